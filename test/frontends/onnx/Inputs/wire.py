"""ONNX files, byte by byte: what tests write that no exporter would."""

import struct


# The wire format: numbers and what has a length.
def number(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(tag, value):
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    if isinstance(value, float):
        return number(tag << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return number(tag << 3 | 2) + number(len(value)) + value


def message(**fields):
    """Fields by the tables below; a list is a repeated one."""
    out = b""
    for name, value in fields.items():
        for each in value if isinstance(value, list) else [value]:
            out += field(TAGS[name], each)
    return out


TAGS = dict(
    ir_version=1, opset_import=8, graph=7, functions=25,  # a model
    node=1, initializer=5, sparse=15, input=11, output=12, value_info=13,  # a graph
    reads=1, makes=2, node_name=3, op_type=4, attribute=5, node_domain=7,  # a node
    attribute_name=1, kind=20, i=3, s=4, t=5, g=6, ints=8, ref=21,  # an attribute
    dims=1, data_type=2, float_data=4, int64_data=7, tensor_name=8, raw_data=9, external=13, location=14,  # a tensor
    value_name=1, value_type=2, tensor_type=1, elem_type=1, shape=2, dim=1, dim_value=1, dim_param=2,  # a value
    set_domain=1, version=2, key=1, value=2,
    function_name=1, function_reads=4, function_makes=5, function_node=7, function_sets=9, function_domain=10)


def value(name, *sizes, kind=1):
    dims = [message(dim_param=n) if isinstance(n, (str, bytes)) else message(dim_value=n) for n in sizes]
    return message(value_name=name, value_type=message(tensor_type=message(elem_type=kind, shape=message(dim=dims))))


def node(kind, reads, makes, *attributes, domain=""):
    return message(reads=reads, makes=makes, op_type=kind, node_name=kind.lower(), attribute=list(attributes), node_domain=domain)


def tensor(name, *dims, kind=1, **data):
    return message(dims=list(dims), data_type=kind, tensor_name=name, **data)


def integers(name, *values):
    return message(attribute_name=name, kind=7, ints=list(values))


def integer(name, value):
    return message(attribute_name=name, kind=2, i=value)


def body(name, graph):
    return message(attribute_name=name, kind=5, g=graph)


def graph(nodes, reads=(), makes=(), tensors=(), **more):
    return message(node=list(nodes), initializer=list(tensors), input=list(reads), output=list(makes), **more)


def model(nodes, reads=(value("x", 2, 3),), makes=(value("y", 2, 3),), tensors=(), functions=(), **more):
    return message(ir_version=8, graph=graph(nodes, reads, makes, tensors, **more), functions=list(functions),
                   opset_import=message(set_domain="", version=18))
