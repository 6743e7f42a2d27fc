"""tmc: training steps that fit a memory budget.

    step = tmc.compile(model, batch, budget="12GiB", optimizer="adamw(clip=1.0)")
    step.learning_rate = 3e-4
    for batch in loader:
        loss = step(**batch)
    step.save_pretrained("trained")

docs/python.md shows the way from a model to a checkpoint. `tmc.hf` has a Trainer for models of
transformers, `tmc.data` converts data, and `tmc.log` converts logs.
"""

from .compiling import compile, plan
from .errors import (
    BadInputError,
    BudgetError,
    DefectError,
    Error,
    MachineError,
    Node,
    UnsupportedError,
    UsageError,
)
from .exporting import export
from .plan import Plan
from .step import Space, Statistics, Step, TensorInfo, Tensors

__version__ = "0.1.0"

__all__ = [
    "BadInputError",
    "BudgetError",
    "DefectError",
    "Error",
    "MachineError",
    "Node",
    "Plan",
    "Space",
    "Statistics",
    "Step",
    "TensorInfo",
    "Tensors",
    "UnsupportedError",
    "UsageError",
    "compile",
    "export",
    "plan",
]
