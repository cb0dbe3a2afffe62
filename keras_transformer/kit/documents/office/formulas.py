"""What a formula of a spreadsheet sees of texts.

A formula may compare whole texts, as `A2="yes"` and `VLOOKUP(A2,D:E,2,0)` do. It computes the same
as before if equal texts have equal translations, and different texts have different ones. Or it
looks inside of texts, as `LEN(A2)`, `LEFT(A2,3)="yes"`, `COUNTIF(A:A,"*yes*")` and every function
that is unknown here: it only computes the same if these texts stay. A text that is joined of others
may be shown, but whatever compares it looks inside of them.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

MOST_COLUMNS, MOST_ROWS = 1 << 14, 1 << 20

_SHEET = r"(?:'(?:[^']|'')+'|[\w.:]+)"
_CELL = r"\$?[A-Za-z]{1,3}\$?\d+"
_EXCEL_REFERENCES = rf"""
    (?P<foreign>(?:'[^'\[]*\[|\[)\d+\][^!,;()"]*!\$?[\w.:$]*)
    |(?:(?P<sheet>{_SHEET})!)?
        (?P<range>{_CELL}(?::{_CELL})?|\$?[A-Za-z]{{1,3}}:\$?[A-Za-z]{{1,3}}|\$?\d+:\$?\d+)(?![\w(.!])
    |(?P<table>[\w.\\]*)(?P<columns>\[(?:[^\[\]']|'.|\[(?:[^\[\]']|'.)*+\])*+\])
"""
_OPEN_REFERENCES = r"""
    (?P<foreign>\['[^'\]]*'\#[^\]]*\])
    |\[(?:\$?(?P<sheet>'(?:[^']|'')+'|[^.'\]]+))?\.(?P<range>[^\]]*)\]
    |(?P<table>\b\B)(?P<columns>\b\B)
"""
_TOKENS = r"""
    (?P<text>"(?:[^"]|"")*+")
    |{references}
    |(?P<function>[\w.]+)\(
    |(?P<number>\d[\d.]*(?:[eE][-+]?\d+)?)(?![\w.])
    |(?:{sheet}!)?(?P<name>[\w.\\]+)
    |(?P<operator><>|<=|>=|[-+*/^&=<>])
    |(?P<open>[({{])
    |(?P<separator>[,;|])
    |(?P<close>[)}}])
"""
_EXCEL, _OPEN_FORMULA = (
    re.compile(_TOKENS.format(references=references, sheet=_SHEET), re.VERBOSE)
    for references in (_EXCEL_REFERENCES, _OPEN_REFERENCES)
)
_CORNER = re.compile(r"(\$?)([A-Za-z]{1,3})?(\$?)(\d+)?")
_COLUMN = re.compile(r"\[((?:[^\[\]']|'.)+)\]")
_COLUMN_TEXT = re.compile(r"(?<=\[)(?:[^\[\]'#]|'.)(?:[^\[\]']|'.)*(?=\])")
_ESCAPE = re.compile("'(.)")
_PREFIX = re.compile(r"(_xlfn\.|_xlws\.|COM\.MICROSOFT\.|ORG\.LIBREOFFICE\.|ORG\.OPENOFFICE\.)+")
_CRITERION = re.compile(r"(<>|[<>]=?|=)?(.*)", re.DOTALL)


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Functions of numbers and of logical values, and those that only ask whether there is a text.
_NUMERIC = _names(
    "SUM SUMSQ SUMPRODUCT PRODUCT SUBTOTAL AGGREGATE AVERAGE AVERAGEA MEDIAN MODE MODE.SNGL STDEV "
    "STDEV.S STDEV.P STDEVP VAR VAR.S VAR.P VARP MIN MINA MAX MAXA LARGE SMALL RANK RANK.EQ "
    "RANK.AVG PERCENTILE PERCENTILE.INC QUARTILE QUARTILE.INC COUNT COUNTA COUNTBLANK ROW ROWS "
    "COLUMN COLUMNS AREAS ROUND ROUNDUP ROUNDDOWN MROUND CEILING FLOOR INT TRUNC ABS SIGN SQRT "
    "POWER EXP LN LOG LOG10 MOD QUOTIENT SIN COS TAN PI RAND RANDBETWEEN DATE TIME YEAR MONTH DAY "
    "HOUR MINUTE SECOND WEEKDAY WEEKNUM ISOWEEKNUM TODAY NOW EDATE EOMONTH DAYS NETWORKDAYS "
    "WORKDAY YEARFRAC PMT PV FV NPV IRR RATE NPER AND OR NOT XOR TRUE FALSE ISBLANK ISTEXT "
    "ISNONTEXT ISNUMBER ISERROR ISERR ISNA ISLOGICAL ISREF ISFORMULA ISEVEN ISODD NA N TYPE "
    "ERROR.TYPE CORREL SLOPE INTERCEPT FORECAST FORECAST.LINEAR TREND GROWTH LINEST"
)
_CRITERIA = _names("COUNTIF COUNTIFS SUMIF SUMIFS AVERAGEIF AVERAGEIFS MAXIFS MINIFS")
# Functions that return some of their arguments; for some, the first argument is only a condition.
_PASSING = _names(
    "IFERROR IFNA IFS T TRANSPOSE UNIQUE FILTER VSTACK HSTACK TAKE DROP TOCOL TOROW SINGLE"
)
_CHOOSING = _names("IF CHOOSE SWITCH")
_COMPARING = ("SWITCH", "UNIQUE")  # all arguments
# Functions of exact or approximate search: the number of the argument that says so, counted from
# 0; whether it is approximate without this argument; and the arguments that it may return.
_LOOKUPS = {
    "MATCH": (2, True, slice(0, 0)),
    "VLOOKUP": (3, True, slice(1, 2)),
    "HLOOKUP": (3, True, slice(1, 2)),
    "XLOOKUP": (4, False, slice(2, 4)),
    "XMATCH": (2, False, slice(0, 0)),
}
_INSIDE_TO_NUMBER = _names(
    "LEN LENB FIND FINDB SEARCH SEARCHB CODE UNICODE EXACT VALUE NUMBERVALUE DATEVALUE TIMEVALUE"
)
_JOINING = _names("CONCATENATE CONCAT TEXTJOIN")


@dataclasses.dataclass(frozen=True)
class Reference:
    """Cells; without a sheet, of that of the formula.

    `moves` says of the column and the row of both corners whether they move with a formula that is
    copied to other cells.
    """

    sheet: str | None
    corners: tuple[int, int, int, int]  # left, top, right, bottom; from 1
    moves: tuple[bool, bool, bool, bool]


@dataclasses.dataclass(frozen=True)
class Name:
    """A defined name, or columns of a table: all of them, if none is given."""

    name: str
    columns: tuple[str, ...] = ()
    has_headings: bool = False


EVERYTHING = Name("")  # cells that are only known when the formula is computed


class Flow(NamedTuple):
    """The texts that an expression may return.

    Attributes:
        references: cells whose texts may be returned.
        texts: literals that may be returned.
        is_made: whether the text may be made of others, or is that of another workbook.
        is_number: whether it is a number.
    """

    references: tuple[Reference | Name, ...] = ()
    texts: tuple[str, ...] = ()
    is_made: bool = False
    is_number: bool = False


_NOTHING, _NUMBER = Flow(), Flow(is_number=True)


@dataclasses.dataclass
class Formula:
    """What a formula sees.

    Attributes:
        texts: all literals in it.
        compared: texts that are compared as a whole.
        inside: texts that it looks inside of.
        result: the texts that it may return.
    """

    texts: list[str] = dataclasses.field(default_factory=list)
    compared: list[Flow] = dataclasses.field(default_factory=list)
    inside: list[Flow] = dataclasses.field(default_factory=list)
    result: Flow = _NOTHING


@dataclasses.dataclass
class _Call:
    """An open parenthesis: the arguments before, and the operands and operators of this one."""

    function: str
    start: int  # of the argument
    arguments: list[Flow] = dataclasses.field(default_factory=list)
    sources: list[str] = dataclasses.field(default_factory=list)
    operands: list[Flow] = dataclasses.field(default_factory=list)
    operators: set[str] = dataclasses.field(default_factory=set)


def key_of(text: str) -> str:
    """Returns a text as spreadsheets compare it."""
    return text.lower()


def criterion(text: str) -> str:
    """Returns the text that a criterion such as "<>yes" is about."""
    return _CRITERION.fullmatch(text)[2]


def read_formula(source: str, is_open: bool = False) -> Formula:
    """Reads a formula.

    Args:
        source: the formula, without entities of XML.
        is_open: whether it is OpenDocument's, not Excel's.
    """
    formula = Formula()
    calls = [_Call("", 0)]
    for match in (_OPEN_FORMULA if is_open else _EXCEL).finditer(source):
        kind, call = match.lastgroup, calls[-1]
        if kind == "text":
            text = match["text"][1:-1].replace('""', '"')
            formula.texts.append(text)
            call.operands.append(Flow(texts=(text,)))
        elif kind == "number":
            call.operands.append(_NUMBER)
        elif kind == "operator":
            call.operators.add(match["operator"])
        elif kind in ("function", "open"):
            name = _PREFIX.sub("", (match["function"] or "").upper())
            calls.append(_Call(name, match.end()))
        elif kind == "separator":
            _end_argument(call, source, match, formula)
        elif kind == "close":
            if len(calls) > 1:
                _end_argument(call, source, match, formula)
                calls.pop()
                calls[-1].operands.append(_returned(call, formula))
        else:
            call.operands.append(_operand(match))
    while calls:  # more than one, if parentheses are missing
        call = calls.pop()
        call.arguments.append(_value(call, formula))
        if calls:
            calls[-1].operands.append(_returned(call, formula))
    formula.result = _joined(call.arguments)
    return formula


def _end_argument(call: _Call, source: str, match: re.Match, formula: Formula) -> None:
    call.arguments.append(_value(call, formula))
    call.sources.append(source[call.start : match.start()].strip().upper())
    call.start, call.operands, call.operators = match.end(), [], set()


def _operand(match: re.Match) -> Flow:
    """Returns the flow of a reference or a name."""
    if match["foreign"]:
        return Flow(is_made=True)
    if match["range"]:
        return Flow((read_reference(match["sheet"], match["range"]),))
    if match["columns"]:
        inner = match["columns"][1:-1]
        names = _COLUMN.findall(match["columns"]) if "[" in inner else [inner]
        names = [_ESCAPE.sub(r"\1", name.removeprefix("@")) for name in names]
        columns = tuple(key_of(name) for name in names if name[:1] != "#")
        has_headings = re.search("#(headers|all)", inner, re.IGNORECASE) is not None
        return Flow((Name(key_of(match["table"]), columns, has_headings),))
    name = match["name"]
    return _NUMBER if name.upper() in ("TRUE", "FALSE") else Flow((Name(key_of(name)),))


def read_reference(sheet: str | None, range: str) -> Reference:
    """Reads a reference to cells, such as "A1:$B$2", "A:B" or "2:3"."""
    first, _, last = range.partition(":")
    corners, moves = [], []
    for end, most in ((first, (1, 1)), (last or first, (MOST_COLUMNS, MOST_ROWS))):
        end = end.rpartition(".")[2]  # OpenDocument's: .A1:.B2
        match = _CORNER.match(end)
        corners.append(_column_number(match[2]) if match[2] else most[0])
        corners.append(int(match[4]) if match[4] else most[1])
        is_fixed = match[1] if match[2] is None else match[3]
        moves += [bool(match[2]) and not match[1], bool(match[4]) and not is_fixed]
    if sheet is not None:
        sheet = key_of(sheet.strip("$'").replace("''", "'"))
    return Reference(sheet, tuple(corners), tuple(moves))


def _column_number(letters: str) -> int:
    """Returns the number of a column, from 1: 27 for "AA"."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _joined(flows: Iterable[Flow], is_made: bool = False) -> Flow:
    flows = list(flows)
    return Flow(
        tuple(one for flow in flows for one in flow.references),
        tuple(text for flow in flows for text in flow.texts),
        is_made or any(flow.is_made for flow in flows),
        bool(flows) and all(flow.is_number for flow in flows),
    )


def _value(call: _Call, formula: Formula) -> Flow:
    """Returns the value of operands with operators between them."""
    operators, operands = call.operators, call.operands
    flow = _joined(operands, is_made="&" in operators)
    if not operators:
        return flow
    is_arithmetic = not operators.isdisjoint("+-*/^")
    if not operators.isdisjoint(("=", "<>", "<", ">", "<=", ">=")):
        if operators.isdisjoint(("<", ">", "<=", ">=")):
            formula.compared.append(flow)
        elif "&" in operators or not (
            is_arithmetic or any(operand.is_number for operand in operands)
        ):
            formula.inside.append(flow)
        return _NUMBER
    if "&" in operators:
        return flow
    if flow.is_made:
        formula.inside.append(flow)
    return _NUMBER


def _returned(call: _Call, formula: Formula) -> Flow:
    """Returns the value of a function."""
    function, arguments = call.function, call.arguments
    flow = _joined(arguments)
    if function in _COMPARING:
        formula.compared.append(flow)
    if function == "" or function in _PASSING:
        return flow
    if function in _NUMERIC:
        return _NUMBER
    if function in _CHOOSING:
        return _joined(arguments[1:])
    if function in _CRITERIA:
        _add_search(flow, formula)
        return _NUMBER
    if function in _LOOKUPS:
        return _looked_up(call, formula)
    if function == "INDEX":
        return _joined(arguments[:1])
    if function in _JOINING:
        return flow._replace(is_made=True)
    if function in ("INDIRECT", "OFFSET"):
        if function == "INDIRECT":
            formula.inside.append(flow)
        return Flow((EVERYTHING,))
    formula.inside.append(flow)
    return _NUMBER if function in _INSIDE_TO_NUMBER else flow._replace(is_made=True)


def _looked_up(call: _Call, formula: Formula) -> Flow:
    number, is_approximate, returned = _LOOKUPS[call.function]
    if len(call.sources) > number:
        is_approximate = call.sources[number] not in ("0", "FALSE", "FALSE()", "")
    sought = _joined(call.arguments[:2])
    if is_approximate:
        formula.inside.append(sought)
    else:
        _add_search(sought, formula)
    return _joined(call.arguments[returned]) if call.arguments[returned] else _NUMBER


def _add_search(flow: Flow, formula: Formula) -> None:
    """Adds texts that are compared with a criterion, which may be a pattern or an order."""
    if any(is_pattern(text) for text in flow.texts):
        formula.inside.append(flow)
    else:
        formula.compared.append(flow)


def is_pattern(text: str) -> bool:
    """Whether a criterion does not mean a whole text: "*late*", "<m"."""
    operator, rest = _CRITERION.fullmatch(text).groups()
    return any(map(str.isalpha, rest)) and (
        operator in ("<", ">", "<=", ">=") or re.search(r"[*?~]", rest) is not None
    )


def with_texts(source: str, translation: Callable[[str], str]) -> str:
    """Returns an Excel formula with other texts, and other headings of tables."""

    def column(match: re.Match) -> str:
        sign, name = re.fullmatch("(@?)(.*)", match[0], re.DOTALL).groups()
        text = _ESCAPE.sub(r"\1", name)
        new = translation(text)
        return match[0] if new == text else sign + re.sub(r"([\[\]#'])", r"'\1", new)

    def token(match: re.Match) -> str:
        if match.lastgroup == "text":
            text = match["text"][1:-1].replace('""', '"')
            operator, rest = _CRITERION.fullmatch(text).groups()
            new = translation(text)
            if new == text and operator:
                new = operator + translation(rest)
            return '"{}"'.format(new.replace('"', '""')) if new != text else match[0]
        if not match["columns"]:
            return match[0]
        return f"{match['table']}{_COLUMN_TEXT.sub(column, match['columns'])}"

    return _EXCEL.sub(token, source)
