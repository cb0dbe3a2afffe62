"""An ONNX graph, written node by node with its weights."""

import hashlib
from typing import Any, NamedTuple

import numpy as np
import onnx

from keras_transformer.support.errors import require

OPSET = 17  # from 2022: layer normalization is one operator
IR_VERSION = 8  # the file format of the same time
LARGEST_FILE = 2**31 - 2**20  # bytes: protobuf messages are limited to 2 GiB


class Tensor(NamedTuple):
    """An input or output of a graph."""

    name: str
    dtype: int  # such as onnx.TensorProto.FLOAT
    shape: list[str | int]  # a name for an axis of any length


class Graph:
    """The nodes and weights so far. A value is the name of an input, a node or a weight."""

    def __init__(self):
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}  # by name, which identifies the content

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Adds a node with one output, and returns its name: `output`, or a new one."""
        name = f"{operator}_{len(self._nodes)}"
        return self._add(name, operator, inputs, [output or name], attributes)[0]

    def nodes(self, operator: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """Adds a node with several outputs, and returns their names."""
        name = f"{operator}_{len(self._nodes)}"
        names = [f"{name}_{number}" for number in range(outputs)]
        return self._add(name, operator, inputs, names, attributes)

    def _add(self, name, operator, inputs, outputs: list[str], attributes) -> list[str]:
        self._nodes.append(onnx.helper.make_node(operator, inputs, outputs, name, **attributes))
        return outputs

    def weight(self, values) -> str:
        """Adds an array, or a list of integers as int64; equal ones are stored once."""
        array = np.asarray(values)
        digest = hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        name = f"weight_{digest.hexdigest()[:16]}"
        if name not in self._weights:
            self._weights[name] = onnx.numpy_helper.from_array(array, name)
        return name

    def model(self, name: str, inputs: list[Tensor], outputs: list[Tensor]) -> onnx.ModelProto:
        """Returns the checked model.

        Raises:
            InputError: if it is too large for a file.
        """
        size = sum(len(tensor.raw_data) for tensor in self._weights.values())
        rule = f"must have at most {LARGEST_FILE:,} bytes of weights in an ONNX graph"
        require(size <= LARGEST_FILE, "model", rule, f"{size:,}")
        graph = onnx.helper.make_graph(
            self._nodes,
            name,
            [onnx.helper.make_tensor_value_info(*tensor) for tensor in inputs],
            [onnx.helper.make_tensor_value_info(*tensor) for tensor in outputs],
            list(self._weights.values()),
        )
        opset = onnx.helper.make_opsetid("", OPSET)
        model = onnx.helper.make_model(
            graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="keras-transformer"
        )
        onnx.checker.check_model(model)
        return model
