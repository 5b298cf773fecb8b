"""Attacks on money: what costs more is hidden by other figures, by forged records, or by the length of the comment."""

import json
from typing import Final

from attacks.attack import Attack, append, delete, edit, together, write
from repositories import Repository

_PRICE: Final = "# prices: {v2: 1.5}    # USD per chip hour, for the cost of a run\n"
_PRICES: Final = edit("tpucfg.yaml", (_PRICE, "prices: {v2: 1.5}\n"))
_TIMEOUT: Final = "  max_run_duration: 2h\n"
_MODEL_DIR: Final = "    model_dir: ${run_dir}\n"
_LIMITED: Final = edit("tpucfg.yaml", (_MODEL_DIR, _MODEL_DIR + _TIMEOUT))
_LARGER: Final = edit(
    "tpucfg.yaml", ("sizes: [v2-8, v2-32, v2-128]", "sizes: [v2-8, v2-32, v2-512]")
)
_LONGER: Final = edit("tpucfg.yaml", ("train_steps: 4000", "train_steps: 40000"))
_PROTECT: Final = (
    "    protect: true                # Pulumi refuses to delete or replace resources with data\n"
)


def _record(size: str, rate: float) -> str:
    return (
        json.dumps({"metrics": {"examples_per_second": rate}, "name": "mnist", "size": size}) + "\n"
    )


def _second_spec(repository: Repository) -> None:
    text = (repository.folder / "tpucfg.yaml").read_text()
    write("other/tpucfg.yaml", text.replace("name: mnist", "name: other"))(repository)


_RECORDED: Final = together(
    _PRICES, *(write(f"results/{name}.jsonl", _record("v2-8", 1000)) for name in ("dev", "prod"))
)
_RUN_TEN_TIMES: Final = "+61.44 USD/run on v2-8 in dev, prod (+900%)"
_FOUR_TIMES_THE_CHIPS: Final = "USD/hour on v2-128 → v2-512, new in dev, prod (+300%)"
_RESERVED: Final = ("target: vertex-ai\n", "target: vertex-ai\ncapacity: {reservation: mine}\n")
_ALLOWED: Final = ", ".join(f"TPU04{digit}: no reason" for digit in range(1, 6))
_OTHER_JOB: Final = '{capacity: on-demand, trainer: {max_run_duration: null, env: {DEBUG: "1"}}}'
_ANOTHER_RUNG: Final = (
    "    project: my-project-dev\n",
    f"    project: my-project-dev\n    sizes: [v2-8, v2-32, v2-128, v2-512]\n    overrides: {{v2-512: {_OTHER_JOB}}}\n",
)
_ARGS: Final = "    data_dir: ${bucket}/data\n"

ATTACKS: Final = (
    Attack(
        "larger-slice", _LARGER, ("; +288.00 " + _FOUR_TIMES_THE_CHIPS,), status=0, base=_PRICES
    ),
    Attack(
        "larger-slice-without-prices",
        _LARGER,
        ("; +192 chips on v2-128 → v2-512, new in dev, prod (+300%)",),
        status=0,
    ),
    Attack(
        "lower-price-beside-a-larger-slice",
        together(_LARGER, edit("tpucfg.yaml", ("v2: 1.5", "v2: 0.3"))),
        (
            "; +57.60 " + _FOUR_TIMES_THE_CHIPS,
            "> - price `v2` changed from `1.5` to `0.3`: everything looks cheaper",
        ),
        status=0,
        base=_PRICES,
    ),
    Attack(
        "prices-removed-beside-a-larger-slice",
        together(_LARGER, edit("tpucfg.yaml", ("prices: {v2: 1.5}\n", ""))),
        ("; +288.00 " + _FOUR_TIMES_THE_CHIPS, "> - price `v2` removed (was `1.5`)"),
        status=0,
        base=_PRICES,
    ),
    Attack("longer-run", _LONGER, (_RUN_TEN_TIMES,), status=0, base=_RECORDED),
    Attack(
        "longer-run-with-a-forged-record",
        together(
            _LONGER,
            *(append(f"results/{name}.jsonl", _record("v2-8", 1e9)) for name in ("dev", "prod")),
        ),
        (
            _RUN_TEN_TIMES,
            "> - **dev**: results: `v2-8` recorded with `examples_per_second 1000000000`, previously",
        ),
        status=0,
        base=_RECORDED,
    ),
    Attack(
        "longer-run-with-records-removed",
        together(_LONGER, delete("results/dev.jsonl"), delete("results/prod.jsonl")),
        (
            _RUN_TEN_TIMES,
            "> - **dev**: results: 1 record of `results/dev.jsonl` removed or rewritten",
        ),
        status=0,
        base=_RECORDED,
    ),
    Attack(
        "longer-run-with-unreadable-records",
        together(_LONGER, append("results/dev.jsonl", "{\n" * 30)),
        (_RUN_TEN_TIMES, "`results/dev.jsonl` cannot be read"),
        status=0,
        base=_RECORDED,
    ),
    Attack(
        "records-pushed-out-of-the-export",
        together(_LONGER, *(write(f"a/{number}.txt", "") for number in range(5200))),
        (_RUN_TEN_TIMES,),
        status=0,
        base=_RECORDED,
    ),
    Attack(
        "time-limit-removed",
        edit("tpucfg.yaml", (_TIMEOUT, "")),
        ("maximum run duration removed (was `2h`): nothing else ends a run that hangs",),
        status=0,
        base=together(_PRICES, _LIMITED),
    ),
    Attack(
        "time-limit-removed-in-the-headline",
        edit("tpucfg.yaml", (_TIMEOUT, "")),
        ("; cost of a run not limited in every config\n",),
        status=0,
        base=_LIMITED,
    ),
    Attack(
        "time-limit-removed-behind-harmless-phrases-of-the-headline",
        edit(
            "tpucfg.yaml", (_TIMEOUT, ""), ("version: 1\n", f"version: 1\nallow: {{{_ALLOWED}}}\n")
        ),
        (
            "configs changed; cost of a run not limited in every config, TPU041 allowed,",
            " allowed and 2 more\n",
        ),
        status=0,
        base=_LIMITED,
    ),
    Attack(
        "larger-slice-on-demand-without-a-time-limit",
        edit("tpucfg.yaml", _ANOTHER_RUNG),
        (
            "; +256 chips on v2-512, new in dev; cost of a run not limited in dev: v2-512\n",
            "> - **dev: v2-512**: capacity `on-demand`, unlike `v2-128` with `reservation mine`: machines are billed",
            "maximum run duration not set, unlike `v2-128` with `2h`: nothing else ends a run that hangs",
            "nothing limits the whole time of a run (`set trainer.max_run_duration`)",
            "- **dev: v2-512**: `DEBUG` set in another way than on `v2-128`",
        ),
        status=0,
        base=together(_LIMITED, edit("tpucfg.yaml", _RESERVED)),
    ),
    Attack(
        "new-spec-without-prices",
        _second_spec,
        ("6 configs added; +64 chips on v2-128, new in dev, prod",),
        status=0,
    ),
    Attack(
        "time-limit-raised",
        edit("tpucfg.yaml", (" 2h", " 1d")),
        ("USD/run at most on v2-128 in dev, prod (+1,100%)", "192.00 → 2,304.00 (12×)"),
        status=0,
        base=together(_PRICES, _LIMITED),
    ),
    Attack(
        "lifted-protection-behind-many-cautions",
        together(
            edit("tpucfg.yaml", (_PROTECT, "")),
            *(
                append(f"stacks/Pulumi.{name}.yaml", f"  mnist:bucketMembers: [{members}]\n")
                for name in ("dev", "prod")
                for members in (
                    ", ".join(f'"group:{name}-{number}@example.com"' for number in range(60)),
                )
            ),
        ),
        (
            "**prod**: protection lifted",
            "`group:dev-59@example.com`",
            "`group:prod-59@example.com`",
        ),
    ),
    Attack(
        "lifted-protection-behind-a-huge-difference",
        together(
            edit(
                "tpucfg.yaml",
                (_PROTECT, ""),
                (
                    _ARGS,
                    _ARGS + "".join(f"    flag_{number}: {'é' * 900}\n" for number in range(190)),
                ),
            ),
        ),
        ("**prod**: protection lifted",),
    ),
)
