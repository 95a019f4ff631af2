"""The job spec: every way to name devices, what is refused and by which name, and one canonical form."""

from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from jobs.changes import Clone, CloneStart, JobChanges
from jobs.device_count import DeviceCount
from jobs.spec import JobSpec, requested_ranks, stored_request
from trainer.config import TrainConfig

TRAIN = {"model": "resnet18", "data": "digits"}


def spec(**fields: Any) -> JobSpec:
    return JobSpec.model_validate({"train": TRAIN} | fields)


def refusal(**fields: Any) -> tuple[str, str]:
    """The field that is named, and the message, of the last thing wrong with a spec."""
    with pytest.raises(ValidationError) as error:
        spec(**fields)
    wrong = error.value.errors()[-1]
    named = wrong.get("ctx", {}).get("field")
    return named or ".".join(str(part) for part in wrong["loc"] if part != "DeviceCount"), wrong["msg"]


@pytest.mark.parametrize(
    ("written", "canonical", "world_size"),
    [
        (0, "cuda:0", 1),
        ("0", "cuda:0", 1),
        ("cuda:0", "cuda:0", 1),
        ([0, 1], "cuda:0,cuda:1", 2),
        ("0,1", "cuda:0,cuda:1", 2),
        (["cuda:0", "cuda:1"], "cuda:0,cuda:1", 2),
        ("cuda:0,cuda:1", "cuda:0,cuda:1", 2),
        (["cuda:10", "cuda:11"], "cuda:10,cuda:11", 2),
        ("3,1,2,0", "cuda:3,cuda:1,cuda:2,cuda:0", 4),
        ("cpu", "cpu", 1),
        ("mps", "mps", 1),
        ("auto", "auto", 1),
    ],
    ids=repr,
)
def test_every_form_of_a_device_list_is_stored_in_one_form(written: Any, canonical: str, world_size: int) -> None:
    job = spec(device=written, train=TRAIN | {"batch": 64})

    assert (job.device, job.world_size) == (canonical, world_size)


def test_a_job_with_no_device_takes_what_there_is() -> None:
    assert spec().device == "auto"


@pytest.mark.parametrize(
    ("written", "token"),
    [
        ("0,0", "'0'"),
        ([1, 1], "1"),
        ("-1", "'-1'"),
        ("0,-1", "'-1'"),
        (-1, "-1"),
        ("", "''"),
        ("cuda:", "'cuda:'"),
        ("0-3", "'0-3'"),
        (True, "True"),
        ([0, True], "True"),
        ("cuda:0,cpu", "'cpu'"),
        ("cpu,cuda:0", "'cpu'"),
        ("0,,1", "''"),
        ("0,", "''"),
        ("cuda:0,1", "'1'"),
        (["0", "1"], "'0'"),
        (0.0, "0.0"),
        (None, "None"),
        ("gpu", "'gpu'"),
        ("cuda:01", "'cuda:01'"),
        ([], "the list is empty"),
    ],
    ids=repr,
)
def test_what_is_no_device_list_is_refused_by_its_token(written: Any, token: str) -> None:
    field, message = refusal(device=written)

    assert field == "device"
    assert token in message


def test_a_number_of_devices_may_stand_for_a_list() -> None:
    job = spec(device={"count": 2, "host": "alpha", "min_memory_gb": 24, "name": "A100"})

    assert job.device == DeviceCount(count=2, host="alpha", min_memory_gb=24, name="A100")
    assert job.world_size == 2


@pytest.mark.parametrize(
    ("device", "field"),
    [
        ({"count": 0}, "device.count"),
        ({"count": True}, "device.count"),
        ({"count": "2"}, "device.count"),
        ({}, "device.count"),
        ({"count": 2, "hots": "alpha"}, "device.hots"),
        ({"count": 2, "min_memory_gb": -1}, "device.min_memory_gb"),
        ({"count": 2, "min_memory_gb": float("inf")}, "device.min_memory_gb"),
        ({"count": 2, "name": ""}, "device.name"),
        ({"count": 2, "host": "a\x00"}, "device.host"),
    ],
)
def test_a_number_of_devices_that_is_none_is_refused_by_its_field(device: dict[str, Any], field: str) -> None:
    assert refusal(device=device)[0] == field


@pytest.mark.parametrize(
    ("batch", "fields", "offers"),
    [
        (10, {"device": "0,1,2"}, ("9", "12")),
        (64, {"device": {"count": 3}}, ("63", "66")),
        (7, {"device": "cpu", "nproc_per_node": 2}, ("6", "8")),
        (1, {"device": "0,1"}, ("2", "4")),
    ],
)
def test_a_batch_that_does_not_divide_is_refused_with_the_two_nearest_that_do(
    batch: int, fields: dict[str, Any], offers: tuple[str, str]
) -> None:
    field, message = refusal(train=TRAIN | {"batch": batch}, **fields)

    assert field == "train.batch"
    assert message.endswith(f"the nearest that do: {' or '.join(offers)}")


@pytest.mark.parametrize("device", ["0,1,2", {"count": 3}, "auto", "cpu"])
def test_a_batch_that_the_run_is_to_find_divides_among_any_devices(device: Any) -> None:
    assert spec(device=device, train=TRAIN | {"batch": -1}).train.batch == -1


@pytest.mark.parametrize("device", ["0,1", {"count": 2}])
def test_one_rank_may_have_several_devices(device: Any) -> None:
    job = spec(device=device, train=TRAIN | {"strategy": "dp"})

    assert (job.request.device_count, job.world_size) == (2, 1)


def test_a_batch_divides_among_the_devices_of_one_rank() -> None:
    field, message = refusal(device="0,1,2", train=TRAIN | {"strategy": "dp", "batch": 10})

    assert field == "train.batch"
    assert "3 devices" in message
    assert message.endswith("9 or 12")


@pytest.mark.parametrize(
    ("strategy", "fields", "way_out"),
    [
        ("single", {"device": "0,1"}, "name one"),
        ("single", {"device": {"count": 2}}, "name one"),
        ("single", {"device": "cpu", "nproc_per_node": 2}, "name one"),
        ("dp", {"device": "cpu", "nproc_per_node": 2}, "leave strategy out"),
        ("dp", {"device": "mps"}, "leave strategy out"),
    ],
)
def test_a_strategy_that_the_devices_do_not_suit_is_refused_with_the_way_out(
    strategy: str, fields: dict[str, Any], way_out: str
) -> None:
    field, message = refusal(train=TRAIN | {"strategy": strategy}, **fields)

    assert field == "train.strategy"
    assert message.startswith(repr(strategy))
    assert way_out in message


@pytest.mark.parametrize("strategy", ["ddp", "dp", "single"])
@pytest.mark.parametrize("device", ["0", "cpu", "auto", {"count": 1}])
def test_one_device_suits_every_strategy(strategy: str, device: Any) -> None:
    assert spec(device=device, train=TRAIN | {"strategy": strategy}).world_size == 1


def test_the_largest_batch_that_a_run_may_find_has_a_sample_for_each_rank() -> None:
    field, message = refusal(device={"count": 3}, train=TRAIN | {"batch": -1, "nbs": 2})

    assert field == "train.nbs"
    assert "2 samples do not go round 3 ranks; the least for them is 3" in message
    spec(device={"count": 3}, train=TRAIN | {"batch": -1, "nbs": 3})


@pytest.mark.parametrize(
    ("stored", "devices", "ranks"),
    [
        ({"train": {}, "device": "cuda:0,cuda:1", "nproc_per_node": None}, 2, 2),  # from before there were strategies
        ({"train": {"strategy": "ddp"}, "device": {"count": 3}, "nproc_per_node": None}, 3, 3),
        ({"train": {"strategy": "dp"}, "device": "cuda:0,cuda:1", "nproc_per_node": None}, 2, 1),
    ],
)
def test_a_stored_spec_tells_its_devices_and_its_ranks(stored: dict[str, Any], devices: int, ranks: int) -> None:
    assert (stored_request(stored).device_count, requested_ranks(stored)) == (devices, ranks)


@given(batch=st.integers(1, 500), ranks=st.integers(1, 40))
def test_an_offered_batch_is_accepted_and_no_nearer_one_is(batch: int, ranks: int) -> None:
    if batch % ranks == 0:
        assert spec(device={"count": ranks}, train=TRAIN | {"batch": batch}).world_size == ranks
        return
    _, message = refusal(device={"count": ranks}, train=TRAIN | {"batch": batch})
    offers = [int(word) for word in message.rpartition(":")[2].split(" or ")]

    for offer in offers:
        spec(device={"count": ranks}, train=TRAIN | {"batch": offer})
    divisible = [size for size in range(1, batch + 2 * ranks + 1) if size % ranks == 0]
    assert offers == sorted(sorted(divisible, key=lambda size: (abs(size - batch), size))[:2]) or batch < ranks


def test_a_number_of_processes_starts_that_many_ranks_on_the_cpu() -> None:
    assert spec(device="cpu", nproc_per_node=4).world_size == 4


@pytest.mark.parametrize("device", ["0,1", "mps", "auto", {"count": 2}])
def test_a_number_of_processes_is_for_the_cpu_only(device: Any) -> None:
    field, message = refusal(device=device, nproc_per_node=4)

    assert field == "nproc_per_node"
    assert "cpu" in message


def test_a_number_of_processes_may_repeat_the_length_of_the_list() -> None:
    assert spec(device="0,1", nproc_per_node=2).world_size == 2


@pytest.mark.parametrize("processes", [0, -1, 1025, True, "2"])
def test_a_number_of_processes_that_is_none_is_refused(processes: Any) -> None:
    assert refusal(device="cpu", nproc_per_node=processes)[0] == "nproc_per_node"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"prioritty": 3}, "prioritty"),
        ({"train": TRAIN | {"batch_size": 3}}, "train.batch_size"),
        ({"train": {"data": "digits"}}, "train.model"),
        ({"train": TRAIN | {"lr": float("nan")}}, "train.lr"),
        ({"priority": 101}, "priority"),
        ({"max_retries": -1}, "max_retries"),
    ],
)
def test_a_field_that_is_unknown_missing_or_out_of_range_is_named(fields: dict[str, Any], named: str) -> None:
    assert refusal(**fields)[0] == named


@pytest.mark.parametrize("value", ["70", True])
@pytest.mark.parametrize("name", ["priority", "max_retries", "time_limit_s", "hang_limit_s"])
def test_a_number_is_no_text_and_no_boolean(name: str, value: Any) -> None:
    assert refusal(**{name: value})[0] == name
    assert refusal(device={"count": 1, "min_memory_gb": value})[0].endswith("min_memory_gb")


@pytest.mark.parametrize("name", ["priority", "max_retries"])
def test_a_whole_number_may_have_a_point_with_nothing_behind_it_as_in_json_schema(name: str) -> None:
    found = getattr(spec(**{name: 50.0}), name)
    assert (found, type(found)) == (50, int)
    assert refusal(**{name: 50.5})[0] == name


def test_every_number_of_a_request_may_have_a_point_with_nothing_behind_it() -> None:
    assert JobChanges.model_validate({"priority": 3.0}).priority == 3
    assert Clone.model_validate({"start_from": {"job": 7.0, "checkpoint": 8.0}}).start_from == CloneStart(
        job=7, checkpoint=8
    )
    assert spec(device={"count": 2.0}).device == DeviceCount(count=2)
    assert spec(train=TRAIN | {"epochs": 3.0}).train.epochs == 3


def test_seconds_may_do_without_a_point() -> None:
    assert spec(time_limit_s=60, hang_limit_s=1.5).time_limit_s == 60


def test_a_name_has_a_clear_limit() -> None:
    assert spec(name="ж" * 255).name == "ж" * 255

    field, message = refusal(name="ж" * 300)

    assert (field, message) == ("name", "String should have at most 255 characters")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"name": "a\x00b"}, "name"),
        ({"labels": {"key": "a\x00b"}}, "labels.key"),
        ({"labels": {"a\x00b": "value"}}, "labels.a\x00b.[key]"),
        ({"train": TRAIN | {"data": "/data/\x00"}}, "train.data"),
        ({"train": TRAIN | {"model": "\x00"}}, "train.model"),
        ({"train": TRAIN | {"resume": "/a\x00.pt"}}, "train.resume"),
        ({"name": "lone \ud800"}, "name"),
        ({"labels": {"key": "lone \ud800"}}, "labels.key"),
    ],
)
def test_text_that_no_database_can_store_is_refused(fields: dict[str, Any], named: str) -> None:
    assert refusal(**fields)[0] == named


@pytest.mark.parametrize("key", ["a=b", "a,b", "", "k" * 64])
def test_a_label_key_that_a_filter_could_not_name_is_refused(key: str) -> None:
    assert refusal(labels={key: "value"})[0].startswith("labels.")


def test_labels_may_hold_emoji_dots_and_any_script() -> None:
    labels = {"team.vision": "🚀", "точность": "über 90%", "🏷️": ""}

    assert spec(labels=labels).labels == labels


def test_a_spec_is_frozen() -> None:
    with pytest.raises(ValidationError):
        spec().priority = 3  # type: ignore[misc]  # the mistake itself


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
DEVICES = st.one_of(
    st.sampled_from(["cpu", "mps", "auto"]),
    st.lists(st.integers(0, 9999), min_size=1, max_size=8, unique=True),
    st.builds(
        DeviceCount,
        count=st.integers(1, 8),
        host=st.none() | TEXT.filter(bool),
        min_memory_gb=st.none() | st.floats(0.1, 1000),
        name=st.none() | TEXT.filter(bool),
    ),
)


@given(
    device=DEVICES,
    name=st.none() | TEXT.filter(bool),
    labels=st.dictionaries(TEXT.filter(lambda key: key and not {"=", ","} & set(key)), TEXT, max_size=4),
    priority=st.integers(0, 100),
    batch=st.just(840),  # divides by every number of ranks up to 8
)
def test_a_spec_comes_back_from_json_as_it_was(
    device: Any, name: str | None, labels: dict[str, str], priority: int, batch: int
) -> None:
    job = spec(device=device, name=name, labels=labels, priority=priority, train=TRAIN | {"batch": batch})

    assert JobSpec.model_validate(job.model_dump(mode="json")) == job
    assert JobSpec.model_validate_json(job.model_dump_json()) == job


@given(indices=st.lists(st.integers(0, 9999), min_size=1, max_size=8, unique=True))
def test_the_forms_of_one_list_mean_the_same_in_the_same_order(indices: list[int]) -> None:
    forms = [
        indices,
        ",".join(str(index) for index in indices),
        [f"cuda:{index}" for index in indices],
        ",".join(f"cuda:{index}" for index in indices),
    ]
    canonical = {str(spec(device=form, train=TRAIN | {"batch": 840}).device) for form in forms}

    assert canonical == {",".join(f"cuda:{index}" for index in indices)}


@pytest.mark.parametrize(("batch", "is_one"), [(-2, False), (-1, True), (0, False), (1, True), (1_000_000, True)])
def test_the_schema_and_the_check_agree_on_what_a_batch_is(batch: int, is_one: bool) -> None:
    schema = TrainConfig.model_json_schema()["properties"]["batch"]
    assert (schema["minimum"] <= batch <= schema["maximum"] and batch != schema["not"]["const"]) == is_one
    with nullcontext() if is_one else pytest.raises(ValidationError):
        spec(train=TRAIN | {"batch": batch})


def test_the_schema_offers_every_way_to_name_devices() -> None:
    device = JobSpec.model_json_schema()["properties"]["device"]

    assert [way.get("type") for way in device["anyOf"]] == ["string", "integer", "array", "object"]


def test_a_checkpoint_root_means_the_same_on_every_host() -> None:
    assert spec(checkpoint_root="/mnt/shared").checkpoint_root == "/mnt/shared"
    assert spec(checkpoint_root="s3://bucket/runs").checkpoint_root == "s3://bucket/runs"
    field, message = refusal(checkpoint_root="runs")
    assert field == "checkpoint_root"
    assert "'runs' has to be an absolute path" in message


def test_of_very_many_wrong_arguments_of_a_program_a_few_are_told() -> None:
    with pytest.raises(ValidationError) as refused:
        spec(train={"recipe": "script", "options": {"script": "/p.py", "args": [[]] * 1000}})
    (error,) = refused.value.errors()
    assert error["msg"].count("valid string") == 10
