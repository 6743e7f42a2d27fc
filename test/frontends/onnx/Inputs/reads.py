"""A model whose nodes all read one large constant when the step runs.

    reads.py NODES
"""
import sys

SIZE = 1 << 20
nodes = int(sys.argv[1])
print(f"""ir_version: 8
opset_import {{ domain: "" version: 18 }}
graph {{
  input {{ name: "y0" type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ dim_value: {SIZE} }} }} }} }} }}
  output {{ name: "y{nodes}" type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ dim_value: {SIZE} }} }} }} }} }}
  initializer {{ name: "begin" data_type: 7 int64_data: 0 }}
  initializer {{ name: "end" data_type: 7 int64_data: {SIZE} }}
  initializer {{ name: "step" data_type: 7 int64_data: 1 }}
  node {{ op_type: "Range" input: "begin" input: "end" input: "step" output: "places" }}
  node {{ op_type: "Cast" input: "places" output: "large" attribute {{ name: "to" type: INT i: 1 }} }}""")
for i in range(nodes):
    print(f'  node {{ op_type: "Add" input: "y{i}" input: "large" output: "y{i + 1}" }}')
print("}")
