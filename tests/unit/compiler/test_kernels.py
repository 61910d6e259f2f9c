"""Kernels of Inductor's code with the nodes that its comments name, and texts of later stages, which the data does not hold."""

from __future__ import annotations

import json
from pathlib import Path

from dynascope.compiler.builder.graphs import kernels
from dynascope.compiler.capture.trace_files import load
from dynascope.compiler.report import Kernel, Report

TRACES = Path(__file__).parents[2] / "traces"
#: the form of Inductor's code for a GPU: a comment where a kernel is defined, another where it is called
TRITON = """
# kernel path: /tmp/x.py
# Topologically Sorted Source Nodes: [add, relu], Original ATen: [aten.add, aten.relu]
# Source node to ATen node mapping:
#   add => add
triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', '''
@triton.jit
def triton_poi_fused_add_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0)
''', device_str='cuda')

def call(args):
        buf0 = empty_strided_cuda((4, 4), (4, 1), torch.float32)
        # Topologically Sorted Source Nodes: [mm], Original ATen: [aten.mm]
        extern_kernels.mm(arg0_1, arg1_1, out=buf0)
        stream0 = get_raw_stream(0)
        triton_poi_fused_add_relu_0.run(buf0, buf1, 16, stream=stream0)
        # Topologically Sorted Source Nodes: [add_1, relu_1], Original ATen: [aten.add, aten.relu]
        triton_poi_fused_add_relu_0.run(buf1, buf2, 16, stream=stream0)
        triton_poi_fused_add_relu_0.run(buf2, buf3, 16, stream=stream0)
        buf4 = torch.ops.aten.sort.default(buf3)
"""


def test_kernels_of_a_gpus_code() -> None:
    ops = ["aten.add", "aten.relu"]
    assert kernels(TRITON) == [
        Kernel(name="extern_kernels.mm", ops=["aten.mm"], nodes=["mm"]),
        Kernel(name="triton_poi_fused_add_relu_0", ops=ops, nodes=["add", "relu"], count=2),
        Kernel(name="triton_poi_fused_add_relu_0", ops=ops, nodes=["add_1", "relu_1"]),
        Kernel(name="torch.ops.aten.sort.default"),
    ]
    assert kernels("import torch\nx = 1\n") == []


def test_kernels_and_texts_of_a_log() -> None:
    report = load(TRACES / "inductor-2.13.0.log.gz", strict=True)
    names = [[k.name for k in graph.kernels] for graph in report.graphs]
    assert names[1] == ["extern_kernels.mm", "cpp_fused_add_relu_0"]
    assert report.graphs[1].kernels[0].nodes == ["matmul"]
    assert report.graphs[1].kernels[1].nodes == []  # of C++ kernels the code says nothing
    texts = report.stage_texts["g0"]
    assert {name: len(several) for name, several in texts.items()} == {
        "after_pre_grad_graph": 1, "fx_graph_runnable": 2, "inductor_post_grad_graph": 2,
    }  # fmt: skip
    for script in texts["fx_graph_runnable"]:
        compile(script, "<script>", "exec")
    assert texts["fx_graph_runnable"][0] not in json.dumps(report.to_dict())
    again = Report.from_dict(report.to_dict())
    assert again == report
    assert again.stage_texts == {}
