"""Texts in StableHLO that no JAX writes: an answer in bounded time, or an error."""

import pytest

from stablehlo_flops import Work, count_work
from stablehlo_module import StableHloError, empty_array, parse_module

PRODUCT = (
    "    %1 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0] "
    ": (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n"
)


def module(body: str, functions: str = "") -> str:
    """Return a module with a main function of one argument and these lines."""
    return f"module @m {{\n  func.func public @main(%arg0: tensor<4x4xf32>) {{\n{body}  }}\n{functions}}}\n"


def test_a_product_is_counted() -> None:
    """Two operations for each of 64 multiplications."""
    assert count_work(module(f"{PRODUCT}    return %1 : tensor<4x4xf32>\n")) == Work(2 * 4**3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "module @m {\n",
        module("    return %absent : tensor<4x4xf32>\n"),
        module(
            "    %1 = call @absent(%arg0) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n    return %1 : tensor<4x4xf32>\n"
        ),
        module("    ???\n"),
        module("    {\n" * 1000),
        module(PRODUCT.replace("4x4xf32>\n", "?x4xf32>\n") + "    return %1 : tensor<4x4xf32>\n"),
    ],
)
def test_a_text_of_another_form_is_an_error(text: str) -> None:
    """The FLOPs are then not known."""
    with pytest.raises(StableHloError):
        count_work(text)


@pytest.mark.parametrize(
    ("operation", "is_bounded"),
    [("add %arg0, %arg0", True), pytest.param("optimization_barrier %arg0", False, marks=pytest.mark.slow)],
)
def test_calls_without_end_end(operation: str, *, is_bounded: bool) -> None:
    """Forty functions that each call the next one twice: equal calls are one, and of others there are too many."""
    functions = "".join(
        f"  func.func private @f{number}(%arg0: tensor<4x4xf32>) {{\n"
        f"    %1 = stablehlo.{operation} : tensor<4x4xf32>\n    %2 = stablehlo.{operation} : tensor<4x4xf32>\n"
        f"    %3 = call @f{number + 1}(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
        f"    %4 = call @f{number + 1}(%2) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
        f"    %5 = stablehlo.add %3, %4 : tensor<4x4xf32>\n    return %5 : tensor<4x4xf32>\n  }}\n"
        for number in range(40)
    )
    last = "  func.func private @f40(%arg0: tensor<4x4xf32>) {\n    return %arg0 : tensor<4x4xf32>\n  }\n"
    main = "    %1 = call @f0(%arg0) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n    return %1 : tensor<4x4xf32>\n"
    text = module(main, functions + last)
    if is_bounded:
        assert count_work(text) == Work()
    else:
        with pytest.raises(StableHloError, match="too many operations"):
            count_work(text)


def test_an_array_without_elements_is_found() -> None:
    """Its type is named."""
    assert empty_array("tensor<8x0x4xbf16>") == "tensor<8x0x4xbf16>"
    assert empty_array("tensor<10x20xbf16>, tensor<f32>") == ""


def test_regions_belong_to_their_operation() -> None:
    """A loop has its condition and its body."""
    loop = (
        "    %1 = stablehlo.while(%iterArg = %arg0) : tensor<4x4xf32>\n"
        "    cond {\n      stablehlo.return %c : tensor<i1>\n"
        "    } do {\n      stablehlo.return %iterArg : tensor<4x4xf32>\n    }\n"
    )
    (function,) = parse_module(module(loop)).regions[0].operations
    (operation,) = function.regions[0].operations
    assert (operation.name, operation.operands, len(operation.regions)) == ("stablehlo.while", ["%arg0"], 2)
