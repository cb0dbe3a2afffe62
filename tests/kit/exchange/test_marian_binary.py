"""Marian's binary files, byte by byte."""

import struct

import numpy as np
import pytest

from keras_transformer.kit.exchange import marian_binary
from tests.refusals import refused

MATRIX = np.array([[1.0, -2.0, 0.5], [0.0, 4.0, -0.25]], np.float32)


def test_a_file_by_hand(tmp_path):
    levels = np.array([[32, 0], [-64, 127], [16, -8]], np.int8)  # transposed; the scale is 127 / 4
    stored = {
        "encoder_l1_ffn_W1": marian_binary.int8_matrix("encoder_l1_ffn_W1", MATRIX),
        "encoder_l1_ffn_b1": marian_binary.float_tensor(MATRIX[:1]),
        "special:model.yml": marian_binary.text_tensor("dim-emb: 2\n"),
    }
    content = marian_binary.binary_file(stored)
    assert struct.unpack_from("<2Q", content) == (1, 3)
    headers = [struct.unpack_from("<4Q", content, 16 + 32 * number) for number in range(3)]
    assert headers == [(18, 0x4101, 2, 256), (18, 0x404, 2, 256), (18, 0x101, 1, 256)]
    names = b"encoder_l1_ffn_W1\0encoder_l1_ffn_b1\0special:model.yml\0"
    assert content[112 : 112 + 54] == names
    assert struct.unpack_from("<5i", content, 166) == (2, 3, 1, 3, 12)
    (padding,) = struct.unpack_from("<Q", content, 186)
    start = 194 + padding
    assert start == 256 and len(content) == start + 3 * 256
    assert content[start : start + 6] == levels.tobytes()
    assert struct.unpack_from("<f", content, start + 6) == (31.75,)
    assert struct.unpack_from("<3f", content, start + 256) == (1.0, -2.0, 0.5)
    assert content[start + 512 :].rstrip(b"\0") == b"dim-emb: 2\n"

    file = tmp_path / "model.bin"
    file.write_bytes(content)
    assert marian_binary.is_binary(file)
    read = marian_binary.read_binary(file)
    assert read == stored
    found = marian_binary.array_of("encoder_l1_ffn_W1", read["encoder_l1_ffn_W1"])
    np.testing.assert_allclose(found, levels.T / 31.75)
    np.testing.assert_allclose(found, MATRIX, atol=0.5 / 31.75)


def test_embeddings_are_not_transposed():
    stored = marian_binary.int8_matrix("Wemb", MATRIX)
    assert stored.data[:3] == np.array([32, -64, 16], np.int8).tobytes()
    np.testing.assert_allclose(marian_binary.array_of("Wemb", stored), MATRIX, atol=0.5 / 31.75)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("encoder_l1_self_Wq", True),
        ("decoder_l2_rnn_W", True),
        ("decoder_l2_rnn_Wf", True),
        ("encoder_Wemb", True),
        ("Wemb_QuantMultA", True),
        ("decoder_l1_rnn_W_QuantMultA", False),
        ("encoder_l1_self_Wo_ln_scale", False),
        ("none_QuantMultA", False),
        ("decoder_ff_logit_out_b", False),
    ],
)
def test_names_tell_what_is_rounded(name, expected):
    assert marian_binary.is_rounded(name) == expected


def headers(*items, count=None):
    """The beginning of a file: its headers, and nothing after them."""
    count = len(items) if count is None else count
    return struct.pack("<2Q", 1, count) + b"".join(struct.pack("<4Q", *item) for item in items)


def one(kind, shape, data):
    """A file with one tensor, "a"."""
    dimensions = struct.pack(f"<{len(shape)}i", *shape)
    header = headers((2, kind, len(shape), len(data)))
    return header + b"a\0" + dimensions + struct.pack("<Q", 0) + data


@pytest.mark.parametrize(
    ("content", "argument", "received"),
    [
        (b"", None, "0 bytes where 16"),
        (struct.pack("<2Q", 2, 0), "version", "2"),
        (headers(count=2**61), None, "0 bytes where"),
        (headers((2**62, 0x404, 1, 4)), None, "0 bytes where"),
        (headers((0, 0x404, 2**62, 4)), None, "0 bytes where"),
        (one(0x404, [1], b"\0\0\0\0")[:-1], None, "3 bytes where 4"),
        (one(0x404, [2**30, 2**30], b"\0" * 8), None, "8 bytes for a"),
        (one(0x404, [-1, -1], b"\0" * 8), None, "8 bytes for a, (-1, -1)"),
        (one(0x4101, [2, 2], b"\0" * 7), None, "7 bytes for a"),
        (one(0x4101, [1, 1], b"\0" * 5), None, "the scale 0.0 of a"),
        (one(0x4102, [1, 1], b"\0" * 6), "a", "intgemm16"),
        (one(0x204, [1, 1], b"\0" * 6), "a", "0x204"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_damaged_files(content, argument, received, tmp_path):
    file = tmp_path / "model.bin"
    file.write_bytes(content)
    with refused(argument, received, file):
        marian_binary.read_binary(file)
