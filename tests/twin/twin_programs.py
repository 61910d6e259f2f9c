"""Programs for the twin test: the same text runs plain and recorded, and nobody may see a difference.

A program is a module: definitions, a function `f(x)` made of parts, and a scene that compiles and calls it.  The first
programs go through all parts, then through other scenes; `text(number)` is always the same text.  A program has three names
from outside: `compile_it(function, **options)` is `torch.compile` with a backend that keeps graphs, `call(function, *args)`
runs and keeps the result or the error, and `saw(value)` keeps a value.
"""

from __future__ import annotations

import random
import textwrap

HEAD = """\
import abc, asyncio, collections, contextlib, contextvars, copy, dataclasses, enum, functools, inspect, io, itertools, logging
import operator, os, random, sys, threading, time, traceback, types, warnings, weakref
from concurrent.futures import ThreadPoolExecutor
import torch
import torch.utils.checkpoint
from torch import nn
from torch._dynamo import graph_break
"""

#: name -> (definitions, lines of `f` that read and bind x); NUMBER is the program's
PARTS: dict[str, tuple[str, str]] = {}


def part(name: str, body: str, setup: str = "") -> None:
    PARTS[name] = (textwrap.dedent(setup).strip("\n"), textwrap.dedent(body).strip("\n"))


HELPER = """
    def helper(x):
        x = x.sin()
        graph_break()
        return x + 1
"""
# -- what is not compiled ------------------------------------------------------------------------------
for form, decorator in {
    "plain": "@torch.compiler.disable", "called": "@torch.compiler.disable()", "recursive": "@torch.compiler.disable(recursive=True)",
    "not_recursive": "@torch.compiler.disable(recursive=False)", "reason": "@torch.compiler.disable(reason='why not')",
    "dynamo": "@torch._dynamo.disable", "dynamo_not_recursive": "@torch._dynamo.disable(recursive=False)",
    "not_recursive_reason": "@torch.compiler.disable(recursive=False, reason='why not')",
}.items():  # fmt: skip
    setup = (
        HELPER
        + f"""
    {decorator}
    def off(x):
        return helper(x + 2)
    """
    )
    part(f"disable_{form}", "x = off(x)", setup)
    part(f"disable_{form}_in_loop", "for _ in range(2):\n    x = off(x)", setup)
    part(f"disable_{form}_method", "x = Off().go(x)", HELPER + f"""
    class Off:
        {decorator}
        def go(self, x):
            return helper(x + 2)
    """)  # fmt: skip
for form in ("", ", recursive=False"):
    name = "not_recursive" if form else "recursive"
    part(f"disable_{name}_here", f"x = torch.compiler.disable(helper{form})(x)", HELPER)
    part(f"disable_{name}_lambda", f"x = torch.compiler.disable(lambda y: helper(y) + 1{form})(x)", HELPER)
    part(f"disable_{name}_outside", "x = off(x)", HELPER + f"\n    off = torch.compiler.disable(helper{form})")
    part(f"disable_{name}_module", "x = off(x)", HELPER + f"""
    class Off(nn.Module):
        def forward(self, x):
            return helper(x)
    off = torch.compiler.disable(Off(){form})
    """)  # fmt: skip
    part(f"disable_{name}_class", "x = Off()(x)", HELPER + f"""
    @torch.compiler.disable{'(recursive=False)' if form else ''}
    class Off:
        def __call__(self, x):
            return helper(x)
    """)  # fmt: skip
part("disable_compiles_inside", "x = off(x)", HELPER + """
    again = compile_it(helper)
    @torch.compiler.disable
    def off(x):
        return again(x) + helper(x)
""")  # fmt: skip
part("disable_context", "x = entered(x)", HELPER + """
    @torch.compiler.disable(recursive=False)
    def entered(x):
        with torch._dynamo.eval_frame.DisableContext():
            y = helper(x)
        return helper(y)
""")  # fmt: skip
part("disable_generator", "x = sum(off(x), x)", """
    @torch.compiler.disable
    def off(x):
        yield x + 1
        yield x * 2
""")  # fmt: skip
part("skip_frame", "x = skipped(x)", HELPER + """
    def skipped(x):
        torch._dynamo.skip_frame()
        return helper(x)
""")  # fmt: skip
part("disallow", "x = torch.cos(x)\nx = off(x)", HELPER + "\n    off = torch._dynamo.disallow_in_graph(helper)")
part("allow_in_graph", "x = leaf(x)", """
    @torch.compiler.allow_in_graph
    def leaf(x):
        return x.sin() + 1
""")  # fmt: skip
part("nonstrict_trace", "x = leaf(x)", """
    @torch._dynamo.nonstrict_trace
    def leaf(x):
        graph_break()
        return x.sin() + 1
""")  # fmt: skip
part("assume_constant", "x = x + number()", """
    @torch.compiler.assume_constant_result
    def number():
        return len(inspect.stack()) * 0 + 3
""")  # fmt: skip
part("is_compiling", "x = x + 1 if torch.compiler.is_compiling() else x + 2\nsaw(torch.compiler.is_dynamo_compiling())")
part("nested_region", "x = region(x) + region(x)", """
    @torch.compiler.nested_compile_region
    def region(x):
        return x.sin()
""")  # fmt: skip

# -- stances -------------------------------------------------------------------------------------------
for stance in ("default", "force_eager", "eager_on_recompile", "eager_then_compile", "fail_on_recompile"):
    part(
        f"stance_{stance}",
        f"with torch.compiler.set_stance({stance!r}):\n    x = again(x)",
        HELPER + "    again = compile_it(helper)\n",
    )
    part(f"stance_{stance}_decorated", "x = stanced(x)", HELPER + f"""
    again = compile_it(helper)
    @torch.compiler.set_stance({stance!r})
    def stanced(x):
        return again(x) + helper(x)
    """)  # fmt: skip

# -- frames --------------------------------------------------------------------------------------------
part("getframe", "saw(sys._getframe().f_code.co_name)\nx = x + sys._getframe().f_lineno")
part("getframe_up", "x = x + up()", """
    def up():
        frame, names = sys._getframe(), []
        while frame is not None and len(names) < 4:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        saw(names)
        return len(names)
""")  # fmt: skip
part("inspect_stack", "x = x + peek()", """
    @torch.compiler.disable
    def peek():
        mine = [(s.function, s.lineno) for s in inspect.stack() if s.filename == __file__]
        saw(mine)
        saw([s.function for s in inspect.stack()][:6])
        return len(mine)
""")  # fmt: skip
part("currentframe", "x = x + inspect.currentframe().f_lineno\nsaw(sorted(inspect.currentframe().f_locals))")
part("f_back_locals", "x = x + callers_local()", """
    @torch.compiler.disable
    def callers_local():
        saw(sorted(sys._getframe(1).f_locals)[:5])
        saw([sys._getframe(i).f_code.co_name for i in range(5)])
        return 1
""")  # fmt: skip
part("extract_stack", "saw([s.name for s in traceback.extract_stack()][-3:])")
part("stack_text", "x = x + len(text())", """
    @torch.compiler.disable(recursive=False)
    def text():
        found = [line for line in traceback.format_stack() if __file__ in line]
        saw(found)
        return found
""")  # fmt: skip
part("current_frames", "x = x + running()", """
    @torch.compiler.disable
    def running():
        frame, names = sys._current_frames()[threading.get_ident()], []
        while frame.f_code.co_filename != __file__ or len(names) < 3:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        saw(names)
        return 1
""")  # fmt: skip
part("code_object", "saw(helper.__code__.co_name)\nsaw(len(helper.__code__.co_code))\nx = helper(x)", HELPER)
part("source", "x = x + len(text())", HELPER + """
    @torch.compiler.disable
    def text():
        saw(inspect.getsource(helper))
        return inspect.getsource(helper)
""")  # fmt: skip
part("locals", "saw(sorted(k for k in locals()))\nx = x + 1")
part("globals", "globals()['count'] = globals().get('count', 0) + 1\nx = x + globals()['count']")
part("trace_function", "x = traced(x)", HELPER + """
    @torch.compiler.disable(recursive=False)
    def traced(x):
        calls, before = [], sys.gettrace()
        sys.settrace(lambda frame, *_: calls.append(frame.f_code.co_name))
        try:
            x = x.sin()
            plain(x)
        finally:
            sys.settrace(before)
        saw(calls[:3])
        return x
    def plain(x):
        return 1
""")  # fmt: skip
part("profile_function", "x = profiled(x)", HELPER + """
    @torch.compiler.disable
    def profiled(x):
        calls = []
        sys.setprofile(lambda frame, kind, _: calls.append((frame.f_code.co_name, kind)))
        try:
            helper(x)
        finally:
            sys.setprofile(None)
        saw(calls[:8])
        return x
""")  # fmt: skip
part("warn_level_1", "warnings.warn('from f', stacklevel=1)")
part("warn_level_2", "x = warn(x)", """
    def warn(x):
        warnings.warn('from a helper', UserWarning, stacklevel=2)
        return x + 1
""")  # fmt: skip
part("warn_level_4", "x = warn(x)", """
    @torch.compiler.disable
    def warn(x):
        warnings.warn('from far below', RuntimeWarning, stacklevel=4)
        return x + 1
""")  # fmt: skip
part("logging", "x = said(x)", """
    log, stream = logging.getLogger("twin.NUMBER"), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(funcName)s:%(lineno)d %(message)s"))
    log.addHandler(handler); log.propagate = False
    @torch.compiler.disable
    def said(x):
        log.warning("hello", stacklevel=2)
        saw(stream.getvalue())
        return x + 1
""")  # fmt: skip
part("print", "print('shape', tuple(x.shape))")

# -- compiled inside what is compiled ------------------------------------------------------------------
part("nested", "x = again(x)", HELPER + "    again = compile_it(helper)\n")
part("nested_here", "x = compile_it(helper)(x)", HELPER)
part("nested_decorator", "x = again(x)", "\n@compile_it\ndef again(x):\n    graph_break()\n    return x * 3\n")
part("nested_fullgraph", "x = again(x)", "\ndef plain(x):\n    return x * 3\nagain = compile_it(plain, fullgraph=True)\n")
part("nested_fullgraph_refuses", "x = again(x)", HELPER + "    again = compile_it(helper, fullgraph=True)\n")
part("nested_disabled", "x = torch.compiler.disable(again, recursive=False)(x)", HELPER + "    again = compile_it(helper)\n")
part("nested_module", "x = block(x)", HELPER + """
    class Block(nn.Module):
        def forward(self, x):
            return helper(x)
    block = compile_it(Block())
""")  # fmt: skip
part("error_on_break", "x = strict(x)", HELPER + """
    @torch._dynamo.error_on_graph_break(True)
    def strict(x):
        return helper(x)
""")  # fmt: skip
part("error_on_break_allowed", "with torch._dynamo.error_on_graph_break(True):\n    x = lax(x)", HELPER + """
    @torch._dynamo.error_on_graph_break(False)
    def lax(x):
        return helper(x)
""")  # fmt: skip
part("patch_dynamo_config", "x = patched(x)", HELPER + """
    @torch._dynamo.patch_dynamo_config(recompile_limit=2)
    def patched(x):
        return helper(x)
""")  # fmt: skip
part("disable_nested_breaks", "x = flat(x)", HELPER + """
    flat = getattr(torch._dynamo, "disable_nested_graph_breaks", lambda function: function)(helper)
""")  # fmt: skip
part("comptime", "torch._dynamo.comptime.comptime(lambda ctx: None)\nx = x + 1")
part("comptime_break", "torch._dynamo.comptime.comptime.graph_break()\nx = x + 1")
part("export", "x = x + exported(x)", """
    @torch.compiler.disable
    def exported(x):
        program = torch.export.export(Small(), (torch.ones(3),))
        saw([n.name for n in program.graph.nodes])
        return 1
    class Small(nn.Module):
        def forward(self, x):
            return x.sin() + 1
""")  # fmt: skip
part("make_fx", "x = x + made(x)", """
    @torch.compiler.disable
    def made(x):
        from torch.fx.experimental.proxy_tensor import make_fx
        saw(str(make_fx(lambda y: y.sin() + 1)(torch.ones(3)).graph))
        return 1
""")  # fmt: skip

# -- errors --------------------------------------------------------------------------------------------
part("raises", "x = x + 1\nraise ValueError('the own one')")
part(
    "raises_after_break",
    "x = x + 1\ngraph_break()\nif x.shape[0] < 9:\n    raise Own('late', 3)",
    "\nclass Own(Exception):\n    pass\n",
)
part("raises_in_callee", "x = bad(x)", HELPER + """
    def bad(x):
        x = helper(x)
        raise KeyError('callee') from ValueError('cause')
""")  # fmt: skip
part("catches", "try:\n    x = bad(x)\nexcept LookupError as error:\n    saw(repr(error))\n    x = x - 1", """
    def bad(x):
        raise KeyError('caught')
""")  # fmt: skip
part("catches_after_break", "try:\n    x = bad(x)\nexcept LookupError as error:\n    saw(repr(error))\nfinally:\n    x = x - 1", HELPER + """
    def bad(x):
        helper(x)
        raise KeyError('caught')
""")  # fmt: skip
part("traceback_of_caught", "x = x + caught(x)", HELPER + """
    @torch.compiler.disable(recursive=False)
    def caught(x):
        try:
            bad(x)
        except ValueError as error:
            frames = traceback.extract_tb(error.__traceback__)
            saw([(f.name, f.lineno) for f in frames])
        return 1
    def bad(x):
        x = helper(x)
        raise ValueError('through compiled code')
""")  # fmt: skip
part("exc_info", "try:\n    raise ValueError('info')\nexcept ValueError:\n    x = x + information()", """
    @torch.compiler.disable
    def information():
        saw(str(sys.exc_info()[1]))
        return 1
""")  # fmt: skip
part("bad_shape", "x = x @ torch.ones(7, 7)")
part(
    "bad_shape_eager", "graph_break()\nx = off(x)", "\n@torch.compiler.disable\ndef off(x):\n    return x @ torch.ones(7, 7)\n"
)
part("assertion", "assert x.shape[0] != 3, 'three'\nx = x + 1")
part("assertion_of_values", "assert x.sum() > -1000, 'small'\nx = x + 1")
part("attribute_error", "x = x + getattr(x, 'nothing_there', 2)\nx = x.nothing_there")
part("stop_iteration", "x = next(iter([x])) + next(iter([]), 1)")
part(
    "not_implemented",
    "x = Odd() + x",
    "\nclass Odd:\n    def __add__(self, other):\n        graph_break()\n        return other + 1\n",
)
part("system_exit", "graph_break()\nif x.shape[0] == 3:\n    sys.exit(3)")

# -- control flow and Python ---------------------------------------------------------------------------
part("branch", "if x.sum() > 0:\n    x = x * 2\nelse:\n    x = x - 1")
part("item", "x = x * x.sum().item()")
part("tolist", "x = x + sum(x.tolist())")
part("nonzero", "x = x[: 2] + x.nonzero().sum()")
part("loop_break", "for i in range(3):\n    x = x + i\n    if i == 1:\n        graph_break()")
part("while_break", "n = 3\nwhile n:\n    x = x + n\n    graph_break()\n    n -= 1")
part("with_break", "with torch.no_grad():\n    x = x + 1\n    graph_break()\n    x = x * 2")
part("own_with_break", "with Manager() as m:\n    x = x + m\n    graph_break()\n    x = x * 2", """
    class Manager:
        def __enter__(self):
            saw(sys._getframe(1).f_code.co_name)
            return 1
        def __exit__(self, kind, error, trace):
            saw(kind)
""")  # fmt: skip
part("contextmanager", "with manager():\n    x = x + 1\n    graph_break()", """
    @contextlib.contextmanager
    def manager():
        saw("in")
        try:
            yield
        finally:
            saw("out")
""")  # fmt: skip
part("generator", "x = sum(numbers(x), start=x)", """
    def numbers(x):
        for i in range(3):
            yield x * i
""")  # fmt: skip
part("generator_breaks", "for y in numbers(x):\n    x = x + y", """
    def numbers(x):
        for i in range(2):
            graph_break()
            yield x * i
""")  # fmt: skip
part("yield_from", "x = sum(outer(x), start=x)", """
    def outer(x):
        yield from numbers(x)
        saw("end")
    def numbers(x):
        try:
            yield x + 1
            yield x * 2
        finally:
            saw("closed")
""")  # fmt: skip
part("generator_sent", "g = talks(x)\nnext(g)\nx = g.send(2)", """
    def talks(x):
        got = yield x
        yield x * got
""")  # fmt: skip
part("comprehension", "x = sum([y * 2 for y in (x, x + 1)])\nx = x + len({k: 1 for k in 'ab'})")
part("recursion", "x = down(x, 3)", "\ndef down(x, n):\n    graph_break()\n    return x if n == 0 else down(x + 1, n - 1)\n")
part("closure", "x = adder(x)(x)", """
    def adder(x):
        def add(y):
            graph_break()
            return x + y
        return add
""")  # fmt: skip
part("nonlocal_", "x = counter()(x)", """
    def counter():
        n = 0
        def count(x):
            nonlocal n
            n += 1
            graph_break()
            return x + n
        return count
""")  # fmt: skip
part("partial", "x = functools.partial(helper)(x)", HELPER)
part("reduce_map", "x = functools.reduce(operator.add, map(helper, [x, x + 1]))", HELPER)
part("lru_cache", "x = x + cached(3)", "\n@functools.lru_cache\ndef cached(n):\n    return n * 2\n")
part("wraps", "x = wrapped(x)", HELPER + """
    def decorate(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args)
        return inner
    wrapped = decorate(helper)
""")  # fmt: skip
part("async_", "x = x + asyncio_run(x)", HELPER + """
    @torch.compiler.disable(recursive=False)
    def asyncio_run(x):
        async def main():
            await asyncio.sleep(0)
            return helper(x)
        return asyncio.run(main())
""")  # fmt: skip
part("dataclass", "p = Point(x, 2)\nx = p.total()", """
    @dataclasses.dataclass
    class Point:
        x: object
        y: int
        def total(self):
            graph_break()
            return self.x + self.y
""")  # fmt: skip
part("property_", "x = Has(x).twice", """
    class Has:
        def __init__(self, x):
            self.x = x
        @property
        def twice(self):
            graph_break()
            return self.x * 2
        def __del__(self):
            pass
""")  # fmt: skip
part("metaclass", "x = Sub().go(x)", """
    class Base(abc.ABC):
        @abc.abstractmethod
        def go(self, x): ...
    class Sub(Base):
        def go(self, x):
            graph_break()
            return super().__hash__() * 0 + x
""")  # fmt: skip
part("list_effects", "LOG.append(x.shape[0])\ngraph_break()\nLOG.append(float(x.sum()) > 0)\nx = x + len(LOG)", "\nLOG = []\n")
part("dict_effects", "STATE['n'] = STATE.get('n', 0) + 1\nx = x + STATE['n']", "\nSTATE = collections.OrderedDict()\n")
part("global_tensor", "global LAST\nLAST = x + 1\nx = LAST * 2", "\nLAST = None\n")
part("contextvar", "VAR.set(2)\ngraph_break()\nx = x + VAR.get()", "\nVAR = contextvars.ContextVar('v', default=1)\n")
part(
    "weakref_", "r = weakref.ref(OWNER)\ngraph_break()\nsaw(r() is OWNER)\nx = x + 1", "\nclass Owner: pass\nOWNER = Owner()\n"
)
part("random_", "random.seed(3)\ngraph_break()\nx = x + random.random() * 0 + torch.rand(3).numel()")
part("time_environ", "x = x + (time.time() > 0) + len(os.environ.get('NOTHING_HERE', ''))")
part("numpy_", "x = x + torch.from_numpy(x.detach().numpy() + 1)")
part("enum_", "x = x + Color.RED.value", "\nclass Color(enum.Enum):\n    RED = 2\n")
part("deepcopy", "x = copy.deepcopy(x) + 1")
part("id_hash", "saw(id(x) == id(x))\nx = x + hash('a') * 0")

# -- threads -------------------------------------------------------------------------------------------
part("thread", "x = threaded(x)", HELPER + """
    again = compile_it(helper)
    @torch.compiler.disable
    def threaded(x):
        out = []
        t = threading.Thread(target=lambda: out.append(again(x)))
        t.start(); t.join()
        return out[0]
""")  # fmt: skip
part("thread_not_compiled", "x = threaded(x)", HELPER + """
    @torch.compiler.disable(recursive=False)
    def threaded(x):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(helper, x).result()
""")  # fmt: skip
part("thread_error", "x = threaded(x)", HELPER + """
    again = compile_it(helper)
    @torch.compiler.disable
    def threaded(x):
        def bad(y):
            again(y)
            raise ValueError("in a thread")
        with ThreadPoolExecutor(1) as pool:
            saw(repr(pool.submit(bad, x).exception()))
        return x
""")  # fmt: skip
part("thread_local", "x = x + here()", """
    LOCAL = threading.local()
    @torch.compiler.disable
    def here():
        LOCAL.n = getattr(LOCAL, "n", 0) + 1
        return LOCAL.n
""")  # fmt: skip

# -- transforms, modes, subclasses, autograd -----------------------------------------------------------
part("vmap", "x = torch.vmap(lambda y: y * 2 + 1)(x)")
part("vmap_breaks", "x = torch.vmap(helper)(x)", HELPER)
part("grad", "x = torch.func.grad(lambda y: (y * y).sum())(x)")
part("grad_breaks", "x = torch.func.grad(lambda y: helper(y).sum())(x)", HELPER)
part("jvp", "x = sum(torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),)))")
part("vjp", "y, back = torch.func.vjp(torch.sin, x)\nx = back(y)[0]")
part("jacrev", "x = torch.func.jacrev(lambda y: y * y)(x).sum(0)")
part("hessian", "x = torch.func.hessian(lambda y: (y * y * y).sum())(x).sum(0)")
part("vmap_of_grad", "x = torch.vmap(torch.func.grad(lambda y: y * y))(x)")
part(
    "functional_call",
    "x = torch.func.functional_call(LINEAR, dict(LINEAR.named_parameters()), (x[:3],))",
    "\nLINEAR = nn.Linear(3, 3)\n",
)
part("vmap_of_compiled", "x = outer(x)", HELPER + """
    again = compile_it(helper)
    @torch.compiler.disable
    def outer(x):
        return torch.vmap(again)(x)
""")  # fmt: skip
part("cond", "x = torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))")
part("function_subclass", "x = x.as_subclass(Loud) + 1\ngraph_break()\nx = x.as_subclass(torch.Tensor)", """
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})
""")  # fmt: skip
part("function_subclass_breaks", "x = (x.as_subclass(Loud) * 2).as_subclass(torch.Tensor)", """
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.Tensor.mul:
                graph_break()
            return super().__torch_function__(func, types, args, kwargs or {})
""")  # fmt: skip
part("two_tensor", "x = two(x)", """
    from torch.testing._internal.two_tensor import TwoTensor
    doubled = compile_it(lambda t: t * 2 + 1)
    @torch.compiler.disable
    def two(x):
        return doubled(TwoTensor(x.detach(), x.detach() + 1)).a
""")  # fmt: skip
part("parameter", "x = x + P[0]\nP.data.add_(1)", "\nP = nn.Parameter(torch.ones(3))\n")
part("function_mode", "with Mode():\n    x = torch.sin(x) + 1", """
    from torch.overrides import TorchFunctionMode
    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))
""")  # fmt: skip
part("dispatch_mode", "x = counted(x)", HELPER + """
    from torch.utils._python_dispatch import TorchDispatchMode
    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            saw(str(func))
            return func(*args, **(kwargs or {}))
    @torch.compiler.disable(recursive=False)
    def counted(x):
        with Count():
            return helper(x)
""")  # fmt: skip
part("default_device", "with torch.device('cpu'):\n    x = x + torch.ones(1)")
part(
    "autocast",
    "with torch.autocast('cpu', dtype=torch.bfloat16):\n    y = torch.ones(2, 2) @ torch.ones(2, 2)\nx = x + y.sum().float()",
)
part("inference", "x = infer(x)", HELPER + """
    @torch.inference_mode()
    def infer(x):
        return helper(x).clone()
""")  # fmt: skip
part("no_grad_decorator", "x = still(x)", HELPER + "\n    still = torch.no_grad()(helper)\n")
part("set_grad", "torch._C._set_grad_enabled(False)\nx = x + 1\ngraph_break()\ntorch._C._set_grad_enabled(True)")
part("autograd_function", "x = Double.apply(x)", """
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2
        @staticmethod
        def backward(ctx, g):
            return g * 2
""")  # fmt: skip
part("autograd_function_breaks", "x = Double.apply(x)", """
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            graph_break()
            return x * 2
        @staticmethod
        def backward(ctx, g):
            saw("backward")
            return g * 2
""")  # fmt: skip
part("checkpoint", "x = torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False)")
part("checkpoint_breaks", "x = torch.utils.checkpoint.checkpoint(helper, x, use_reentrant=False)", HELPER)
part("tensor_hook", "if x.requires_grad:\n    x = x * 1\n    x.register_hook(lambda g: g * 2)\nx = x + 1")
part("module_hooks", "x = MODEL(x[:3])", """
    MODEL = nn.Linear(3, 3)
    MODEL.register_forward_hook(lambda module, args, out: out + 1)
    MODEL.register_forward_pre_hook(hooked)
    MODEL.register_full_backward_hook(lambda module, gin, gout: None)
""".replace("hooked", "lambda module, args: (saw('pre'), (args[0] * 2,))[1]"))  # fmt: skip
part("module_hook_breaks", "x = MODEL(x)", """
    def hook(module, args, out):
        graph_break()
        return out + 1
    MODEL = nn.ReLU()
    MODEL.register_forward_hook(hook)
""")  # fmt: skip
part("saved_hooks", "with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):\n    x = x.sin() * x")
part("backward_inside", "x = step(x)", """
    W = nn.Parameter(torch.ones(3))
    @torch.compiler.disable(recursive=False)
    def step(x):
        (W.sum() * 2).backward()
        return x + W.grad.sum()
""")  # fmt: skip
part("optimizer", "LINEAR(torch.ones(3)).sum().backward()\nOPTIMIZER.step()\nOPTIMIZER.zero_grad()", """
    LINEAR = nn.Linear(3, 1)
    OPTIMIZER = torch.optim.SGD(LINEAR.parameters(), lr=0.1)
""")  # fmt: skip
part("modules", "x = MODEL(x[:3])", HELPER + """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Dropout(0.0)
        def forward(self, x):
            return helper(self.b(self.a(x)))
    MODEL = nn.Sequential(Block(), nn.ReLU(), Block())
""")  # fmt: skip
part("module_state", "x = COUNTS(x)", """
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0
        def forward(self, x):
            self.n += 1
            return x + self.n
    COUNTS = Counts()
""")  # fmt: skip
part("in_place", "y = x.clone()\ny.add_(1)\ngraph_break()\ny[0] = 2\nx = y.view(-1)")
part("custom_op", "x = torch.ops.twin.opNUMBER(x)", """
    @torch.library.custom_op("twin::opNUMBER", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return x.sin()
    op.register_fake(lambda x: torch.empty_like(x))
    op.register_autograd(lambda ctx, g: g)
""")  # fmt: skip
part("mark_dynamic", "x = marked(x)", HELPER + """
    again = compile_it(helper)
    @torch.compiler.disable
    def marked(x):
        x = x.detach().clone()
        torch._dynamo.maybe_mark_dynamic(x, 0)
        return again(x)
""")  # fmt: skip
part("reset_inside", "x = afresh(x)", HELPER + """
    @torch.compiler.disable(recursive=False)
    def afresh(x):
        torch._dynamo.reset()
        return helper(x)
""")  # fmt: skip

#: name -> what compiles and calls `f`
SCENES: dict[str, str] = {
    "sizes": "g = compile_it(f)\nfor n in (3, 3, 4, 5):\n    call(g, torch.ones(n))",
    "fullgraph": "g = compile_it(f, fullgraph=True)\nfor n in (3, 4):\n    call(g, torch.ones(n))",
    "dynamic": "g = compile_it(f, dynamic=True)\nfor n in (3, 4, 1):\n    call(g, torch.ones(n))",
    "static": "g = compile_it(f, dynamic=False)\nfor n in (3, 4, 3):\n    call(g, torch.ones(n))",
    "dtypes": "g = compile_it(f)\nfor t in (torch.float32, torch.float64, torch.float32):\n    call(g, torch.ones(3, dtype=t))",
    "backward": """g = compile_it(f, backward=True)
for n in (3, 4):
    x = torch.ones(n, requires_grad=True)
    y = call(g, x)
    call(lambda: y.sum().backward())
    call(lambda: x.grad)""",
    "thread": """g = compile_it(f)
with ThreadPoolExecutor(1) as pool:
    pool.submit(call, g, torch.ones(3)).result()
call(g, torch.ones(4))""",
    "error_on_break": """g = compile_it(f)
with torch._dynamo.error_on_graph_break(True):
    call(g, torch.ones(3))
call(g, torch.ones(3))""",
    "stances": """g = compile_it(f)
for stance in ("force_eager", "eager_then_compile", "default", "eager_on_recompile", "fail_on_recompile"):
    with torch.compiler.set_stance(stance):
        call(g, torch.ones(3))
        call(g, torch.ones(4))""",
    "nested_breaks": """with torch._dynamo.config.patch(nested_graph_breaks=True):
    g = compile_it(f)
    call(g, torch.ones(3))
    call(g, torch.ones(4))""",
    "limit": """with torch._dynamo.config.patch(recompile_limit=2):
    g = compile_it(f, dynamic=False)
    for n in (3, 4, 5, 6):
        call(g, torch.ones(n))""",
    "limit_fails": """with torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
    g = compile_it(f, dynamic=False)
    for n in (3, 4, 3):
        call(g, torch.ones(n))""",
    "module": """class Net(nn.Module):
    def forward(self, x):
        return f(x) * 2
net = Net()
g = compile_it(net)
for n in (3, 4):
    call(g, torch.ones(n))
call(net, torch.ones(3))""",
    "method": """class Owner:
    def go(self, x):
        return f(x) * 2
g = compile_it(Owner().go)
for n in (3, 4):
    call(g, torch.ones(n))""",
    "reset": """g = compile_it(f)
call(g, torch.ones(3))
torch._dynamo.reset()
call(g, torch.ones(3))""",
    "backend_fails": "g = compile_it(f, fails=True)\nfor n in (3, 4):\n    call(g, torch.ones(n))",
    "suppressed": """with torch._dynamo.config.patch(suppress_errors=True):
    g = compile_it(f, fails=True)
    call(g, torch.ones(3))""",
    "two_entries": """g, h = compile_it(f), compile_it(lambda x: f(x) + f(x))
for n in (3, 4):
    call(g, torch.ones(n))
    call(h, torch.ones(n))""",
    "generator": """def calls():
    g = compile_it(f)
    yield call(g, torch.ones(3))
    yield call(g, torch.ones(4))
saw(len(list(calls())))""",
    "no_grad": "g = compile_it(f)\nwith torch.no_grad():\n    call(g, torch.ones(3))\ncall(g, torch.ones(3))",
    "disabled_call": "g = compile_it(f)\ncall(torch.compiler.disable(g), torch.ones(3))\ncall(torch.compiler.disable(f, recursive=False), torch.ones(3))",
    "run_only": "g = compile_it(f)\ncall(g, torch.ones(3))\ncall(torch._dynamo.run(g), torch.ones(3))\ncall(torch._dynamo.run(g), torch.ones(4))",
    "guards_filtered": """g = compile_it(f, options={"guard_filter_fn": lambda guards: [False for _ in guards]})
call(g, torch.ones(3))
call(g, torch.ones(4))""",
    "asynchronous": """async def main():
    g = compile_it(f)
    call(g, torch.ones(3))
    await asyncio.sleep(0)
    call(g, torch.ones(4))
asyncio.run(main())""",
}
#: statements between the parts
BETWEEN = ("x = x * 2", "x = x + 1", "graph_break()", "x = x.cos()", "if x.sum() > 0:\n    x = x + 3", "")


def text(number: int) -> str:
    """The program with this number."""
    draw = random.Random(number)
    names, scenes = list(PARTS), list(SCENES)
    first = names[number % len(names)]
    scene = scenes[number // len(names) % len(scenes)] if number < len(names) else scenes[number * 7 % len(scenes)]
    chosen = [first, *draw.sample([n for n in names if n != first], draw.choice((0, 1, 1, 2)))]
    draw.shuffle(chosen)
    body = []
    for name in chosen:
        body += [draw.choice(BETWEEN), PARTS[name][1]]
    # a `global` statement comes before all uses
    body.sort(key=lambda lines: not lines.startswith("global "))
    setups = "\n".join(dict.fromkeys(PARTS[name][0] for name in chosen))
    lines = [HEAD, setups, "\ndef f(x):", *(textwrap.indent(b, "    ") for b in body), "    return x\n", "def scene():"]
    lines.append(textwrap.indent(SCENES[scene], "    "))
    return f"# {scene}: {', '.join(chosen)}\n" + "\n".join(lines).replace("NUMBER", str(number)) + "\n"
