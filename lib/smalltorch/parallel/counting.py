"""Count the communication between workers while it happens.

PyTorch's `CommDebugMode` counts the calls of collectives; this counts bytes too, and messages to one other worker.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

SPOKEN = {
    "c10d.allreduce_": "all-reduce",
    "c10d._allgather_base_": "all-gather",
    "c10d._reduce_scatter_base_": "reduce-scatter",
    "c10d.send": "send",
    "_c10d_functional.all_reduce": "all-reduce",
    "_c10d_functional.all_gather_into_tensor": "all-gather",
    "_c10d_functional.reduce_scatter_tensor": "reduce-scatter",
}


class Moved(TorchDispatchMode):
    """Counts calls and bytes of what this worker sends or takes part in; a message counts where it is sent.

    The bytes of a collective are those of the whole that it is about: the vector that is summed, the one that is
    gathered, the one that is scattered. Other kinds of communication are refused, so that nothing goes uncounted.

    Chapter `parallelism`.

    Raises:
        ValueError: for a collective of another kind.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Callable[..., Any]:
        out = operation(*args, **(kwargs or {}))
        name = str(operation._overloadpacket)
        if name in SPOKEN:
            kind = SPOKEN[name]
            tensors = [x for x in tree_leaves((args, out)) if isinstance(x, Tensor)]
            self.calls[kind] += 1
            self.bytes[kind] += max(x.numel() * x.element_size() for x in tensors)
        elif "c10d" in name and not any(word in name for word in ("recv_", "wait_tensor", "wrap_tensor", "barrier")):
            raise ValueError(f"collective: expected one of {', '.join(SPOKEN)}, got {name}")
        return out
