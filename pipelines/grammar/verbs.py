"""The verbs, one a line: `english | german | subjects > objects | manners`.

English is `base[/past/participle]`, with a particle after "+" (always before the object) or "*"
(behind a pronoun object). German is `[prefix.]infinitive[/present/past/participle]`, followed by
`sein` where that is the auxiliary and `sich` where the verb is reflexive; "-" stands for a form
that follows from the others. Subjects and objects name noun kinds or single nouns; "people" is
short for person and kin.
"""

from pipelines.grammar.entries import ACCUSATIVE, DATIVE, GermanVerb, Modal, Verb

_INSEPARABLE = ("be", "er", "ver", "ent", "zer", "ge", "über")
# Stems that need an e before -t and -te: arbeitet, öffnet, regnet.
_LINKING_E = ("d", "t", "ffn", "gn")

# Frame, German case and preposition of the object, and the verbs that share them.
_TABLE: tuple[tuple[str, str, str, str], ...] = (
    (
        "intransitive",
        "",
        "",
        """
        sleep/slept/slept | schlafen/schläft/schlief/geschlafen | people animal | quietly well badly
        work | arbeiten | people | quickly slowly carefully patiently alone
        laugh | lachen | people | loudly quietly happily
        cry/cried/cried | weinen | people | loudly quietly secretly
        dance | tanzen | people | happily well badly alone
        swim/swam/swum | schwimmen/-/schwamm/geschwommen sein | people dog horse | well slowly \
            quickly
        run/ran/run | laufen/läuft/lief/gelaufen sein | people animal | quickly slowly
        jump | springen/-/sprang/gesprungen sein | people cat dog horse |
        smile | lächeln | people | happily secretly
        hike | wandern sein | people | alone
        sneeze | niesen | people | loudly
        arrive | an.kommen/-/kam/gekommen sein | people train bus ship |
        get/got/got+up | auf.stehen/-/stand/gestanden sein | people | slowly quickly
        fall/fell/fallen+asleep | ein.schlafen/schläft/schlief/geschlafen sein | people | quickly
        come/came/come+back | zurück.kommen/-/kam/gekommen sein | people |
        hurry/hurried/hurried | beeilen sich | people |
        rest | aus.ruhen sich | people |
    """,
    ),
    (
        "transitive",
        ACCUSATIVE,
        "",
        """
        read/read/read | lesen/liest/las/gelesen | people > text | quickly slowly quietly
        write/wrote/written | schreiben/-/schrieb/geschrieben | people > text | quickly slowly
        translate | übersetzen | people > text word | well badly
        eat/ate/eaten | essen/isst/aß/gegessen | people > food stuff | quickly slowly
        drink/drank/drunk | trinken/-/trank/getrunken | people > drink | quickly slowly
        cook | kochen | people > egg potato carrot meat rice fish | slowly quickly
        order | bestellen | people > drink cake sausage fish meat |
        buy/bought/bought | kaufen | people > text image garment car bicycle boat furniture \
            dish valuable device food stuff drink |
        sell/sold/sold | verkaufen | people > garment car bicycle boat truck furniture dish \
            valuable instrument food | secretly
        see/saw/seen | sehen/sieht/sah/gesehen | people > people animal vehicle building |
        find/found/found | finden/-/fand/gefunden | people > object valuable image animal garment |
        lose/lost/lost | verlieren/-/verlor/verloren | people > object valuable garment |
        look+for | suchen | people > object valuable garment animal | patiently
        need | brauchen | people > object device car bicycle furniture |
        forget/forgot/forgotten | vergessen/vergisst/vergaß/vergessen | people > object word |
        hide/hid/hidden | verstecken | people > object valuable letter | well badly secretly
        steal/stole/stolen | stehlen/stiehlt/stahl/gestohlen | thief boy man woman monkey > \
            valuable object car bicycle | secretly
        love | lieben | people > people animal | secretly
        like | mögen/mag/mochte/gemocht | people > people animal food drink event building |
        visit | besuchen | people > people building city village | secretly
        meet/met/met | treffen/trifft/traf/getroffen | people > people | secretly
        invite | ein.laden/lädt/lud/geladen | people > people |
        call | an.rufen/-/rief/gerufen | people > people | secretly
        pick+*up | ab.holen | people > people |
        greet | grüßen | people > people | loudly quietly happily
        hear/heard/heard | hören | people animal > people animal vehicle |
        watch | beobachten | people cat dog > people animal | quietly patiently secretly
        feed/fed/fed | füttern | people > animal | carefully patiently
        chase | jagen | dog cat wolf lion bear > animal | quickly
        open | öffnen | people > opening bottle letter box suitcase | quickly slowly carefully \
            quietly
        close | schließen/-/schloss/geschlossen | people > opening box suitcase bag | quickly \
            slowly quietly
        clean | putzen | people > room vehicle furniture opening dish | quickly slowly \
            carefully well
        repair | reparieren | people > vehicle device clock roof bridge | quickly slowly \
            carefully well
        wash | waschen/wäscht/wusch/gewaschen | people > garment vehicle | quickly slowly carefully
        break/broke/broken | zerbrechen/zerbricht/zerbrach/zerbrochen | people cat dog > dish |
        build/built/built | bauen | people > house bridge castle ship boat furniture machine | \
            quickly slowly
        paint | malen | people > picture | quickly slowly well badly
        play | spielen | people > song | loudly quietly well badly
        sing/sang/sung | singen/-/sang/gesungen | people > song | loudly quietly well badly happily
        wear/wore/worn | tragen/trägt/trug/getragen | people > garment |
        put/put/put+*on | an.ziehen/-/zog/gezogen | people > garment | quickly slowly
        turn+*on | ein.schalten | people > device | quickly quietly
        turn+*off | aus.schalten | people > device | quickly quietly
        understand/understood/understood | verstehen/-/verstand/verstanden | people > problem \
            question idea word text exercise | quickly well badly
        solve | lösen | people > problem exercise | quickly slowly alone
        leave/left/left | verlassen/verlässt/verließ/verlassen | people > building room area \
            island | quickly quietly secretly
    """,
    ),
    (
        "transitive",
        DATIVE,
        "",
        """
        help | helfen/hilft/half/geholfen | people > people | quickly secretly happily
        thank | danken | people > people | happily
        follow | folgen sein | people dog > people animal | quickly slowly quietly secretly
        listen+to | zu.hören | people > people | patiently quietly
        trust | vertrauen | people > people |
        answer | antworten | people > people | quickly slowly patiently
        congratulate | gratulieren | people > people | happily
    """,
    ),
    (
        "ditransitive",
        ACCUSATIVE,
        "",
        """
        give/gave/given | geben/gibt/gab/gegeben | people > text image object valuable dish food |
        send/sent/sent | schicken | people > text image gift |
        show/showed/shown | zeigen | people > text image valuable garment animal room |
        bring/brought/brought | bringen/-/brachte/gebracht | people > text object food dish drink |
        lend/lent/lent | leihen/-/lieh/geliehen | people > book car bicycle boat instrument \
            umbrella suitcase camera garment |
        offer | an.bieten/-/bot/geboten | people > food stuff drink chair |
        tell/told/told | erzählen | people > story secret |
    """,
    ),
    (
        "prepositional",
        ACCUSATIVE,
        "auf",
        """
        wait+for | warten | people > people train bus letter message | patiently alone
        look+forward to | freuen sich | people > event journey |
    """,
    ),
    (
        "prepositional",
        ACCUSATIVE,
        "an",
        """
        think/thought/thought+of | denken/-/dachte/gedacht | people > people event problem idea |
        remember | erinnern sich | people > people event story | well badly
    """,
    ),
    (
        "prepositional",
        ACCUSATIVE,
        "über",
        """
        talk+about | sprechen/spricht/sprach/gesprochen | people > people event weather problem \
            idea text | loudly quietly
        complain+about | beschweren sich | people > weather noise heat people exam | loudly
    """,
    ),
    (
        "prepositional",
        ACCUSATIVE,
        "um",
        """
        take/took/taken+care of | kümmern sich | people > people animal garden problem | well \
            patiently
    """,
    ),
    (
        "prepositional",
        ACCUSATIVE,
        "für",
        """
        be/-/-+interested in | interessieren sich | people > event text story idea |
    """,
    ),
    (
        "prepositional",
        DATIVE,
        "von",
        """
        dream/dreamed/dreamed+of | träumen | people > people journey house vehicle castle wedding |
    """,
    ),
    (
        "prepositional",
        DATIVE,
        "an",
        """
        take/took/taken+part in | teil.nehmen/nimmt/nahm/genommen | people > exam meeting \
            concert party |
    """,
    ),
    (
        "motion",
        "",
        "",
        """
        go/went/gone | gehen/-/ging/gegangen sein | people | slowly quickly quietly alone
        drive/drove/driven | fahren/fährt/fuhr/gefahren sein | people bus truck | slowly \
            quickly carefully
        climb | klettern sein | boy girl child cat monkey | quickly slowly carefully
    """,
    ),
    (
        "position",
        "",
        "",
        """
        sit/sat/sat | sitzen/-/saß/gesessen | people cat dog bird | quietly alone
        stand/stood/stood | stehen/-/stand/gestanden | people horse cow | quietly alone
        lie/lay/lain | liegen/-/lag/gelegen | dog cat text object garment pig |
        stay/stayed/stayed | bleiben/-/blieb/geblieben sein | people dog cat | alone
        live | wohnen | people | alone
        wait | warten | people dog | patiently quietly alone
    """,
    ),
    (
        "placement",
        ACCUSATIVE,
        "",
        """
        put/put/put | legen | people > text object garment image | quickly carefully quietly
        place | stellen | people > dish vase basket suitcase radio lamp chair | quickly \
            carefully quietly
    """,
    ),
    (
        "clausal",
        "",
        "",
        """
        say/said/said+that | sagen | people |
        believe+that | glauben | people |
        hope+that | hoffen | people |
        know/knew/known+that | wissen/weiß/wusste/gewusst | people |
        notice+that | bemerken | people |
        claim+that | behaupten | people |
        ask+whether | fragen | people |
    """,
    ),
    (
        "control",
        "",
        "",
        """
        try/tried/tried | versuchen | people |
        begin/began/begun | beginnen/-/begann/begonnen | people |
        decide | beschließen/-/beschloss/beschlossen | people |
        refuse | weigern sich | people |
    """,
    ),
    (
        "copula",
        "",
        "",
        """
        be/-/- | sein/ist/war/gewesen sein | |
        become/became/become | werden/wird/wurde/geworden sein | |
    """,
    ),
    (
        "weather",
        "",
        "",
        """
        rain | regnen | |
        snow | schneien | |
    """,
    ),
    (
        "existential",
        ACCUSATIVE,
        "",
        """
        be/-/- | geben/gibt/gab/gegeben | |
    """,
    ),
)


def _german_verb(text: str) -> GermanVerb:
    """Fills in the regular forms: lernt, lernte, gelernt; besucht, besuchte, besucht."""
    forms, *marks = text.split()
    prefix, _, forms = forms.rpartition(".")
    infinitive, present, past, participle = (forms.split("/") + ["-"] * 3)[:4]
    stem = infinitive.removesuffix("n").removesuffix("e")
    ending = "et" if stem.endswith(_LINKING_E) else "t"
    inseparable = infinitive.startswith(_INSEPARABLE) or infinitive.endswith("ieren")
    return GermanVerb(
        prefix=prefix,
        infinitive=infinitive,
        present=stem + ending if present == "-" else present,
        past=stem + ending + "e" if past == "-" else past,
        participle=("" if inseparable else "ge") + stem + ending
        if participle == "-"
        else participle,
        auxiliary="sein" if "sein" in marks else "haben",
        reflexive="sich" in marks,
    )


def regular_past(base: str) -> str:
    """-d after e, -ed elsewhere (verbs that double or change a letter are listed in full)."""
    return base + ("d" if base.endswith("e") else "ed")


def _verb(line: str, frame: str, case: str, preposition: str) -> Verb:
    english, german, roles, manners = (field.strip() for field in line.split("|"))
    forms, _, particle = english.partition("+")
    base, past, participle = (forms.split("/") + [""] * 2)[:3]
    past = past or regular_past(base)
    subjects, _, objects = roles.replace("people", "person kin").partition(">")
    return Verb(
        base,
        past,
        participle or past,
        particle.removeprefix("*"),
        particle.startswith("*"),
        _german_verb(german),
        frame,
        tuple(subjects.split()),
        tuple(objects.split()),
        case,
        preposition,
        tuple(manners.split()),
    )


VERBS: tuple[Verb, ...] = tuple(
    _verb(line, frame, case, preposition)
    for frame, case, preposition, table in _TABLE
    for line in table.strip().splitlines()
)
# "wait" and "be" serve two frames; the first one listed keeps the plain name.
VERB: dict[str, Verb] = {verb.english: verb for verb in reversed(VERBS)}
EXISTENTIAL = next(verb for verb in VERBS if verb.frame == "existential")
HAVE = _verb("have/had/had | haben/hat/hatte/gehabt | |", "auxiliary", "", "").german
BE = VERB["be"].german
VERBS_BY_FRAME: dict[str, tuple[Verb, ...]] = {
    frame: tuple(verb for verb in VERBS if verb.frame == frame)
    for frame in dict.fromkeys(verb.frame for verb in VERBS)
}


def _modal(english: str, past: str, german: str, lexical: bool = False, negatable: bool = True):
    return Modal(english, past, _german_verb(german), lexical, negatable)


# "should" is the subjunctive of sollen, which looks like its past.
MODALS = (
    _modal("can", "could", "können/kann/konnte"),
    _modal("may", "", "dürfen/darf/durfte"),
    _modal("should", "", "sollten/sollte/sollte"),
    _modal("will", "", "werden/wird/wurde"),
    _modal("must", "", "müssen/muss/musste", negatable=False),
    _modal("have to", "had to", "müssen/muss/musste", lexical=True),
    _modal("want to", "wanted to", "wollen/will/wollte", lexical=True),
)
MODAL = {modal.english: modal for modal in MODALS}
