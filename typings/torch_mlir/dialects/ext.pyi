# The bindings ship no types: to pyright, everything in them is of any type.
from typing import Any

def __getattr__(name: str) -> Any: ...
