"""The schema that clients are generated from: complete, true, and the same from one start to the next."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from api.app import create_app
from api.examples import BODIES
from api.methods import METHODS

NO_JSON = {"scrape_metrics", "get_checkpoint_file", "download_logs", "follow_events"}
"""Operations that answer with something else."""


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return create_app().openapi()


def operations_of(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(path, operation) for path, methods in schema["paths"].items() for operation in methods.values()]


def test_every_operation_has_an_id_a_summary_a_description_and_a_described_tag(schema: dict[str, Any]) -> None:
    operations = [operation for _path, operation in operations_of(schema)]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    described = {tag["name"] for tag in schema["tags"] if tag["description"]}
    for operation in operations:
        assert operation["operationId"].isidentifier()
        assert operation["summary"], operation["operationId"]
        assert operation["description"], operation["operationId"]
        assert operation["tags"], operation["operationId"]
        assert set(operation["tags"]) <= described, operation["operationId"]


def test_every_model_has_a_name_of_its_own(schema: dict[str, Any]) -> None:
    # Of two with one name, each would be called by its module too, in every client that is made of the schema.
    assert [name for name in schema["components"]["schemas"] if "__" in name] == []


def test_every_parameter_and_field_that_is_sent_says_what_it_is(schema: dict[str, Any]) -> None:
    silent = [
        (operation["operationId"], parameter["name"])
        for _path, operation in operations_of(schema)
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    ]
    assert silent == []


def test_every_error_is_a_problem_and_stands_where_it_can_occur(schema: dict[str, Any]) -> None:
    for path, operation in operations_of(schema):
        responses = operation["responses"]
        for status, response in responses.items():
            content = list(response.get("content", {}))
            if status.startswith(("4", "5")):
                assert content == ["application/problem+json"], (operation["operationId"], status)
        assert ("413" in responses) == ("415" in responses) == ("requestBody" in operation), path
        assert ("401" in responses) == ("403" in responses) == ("security" in operation), path
        assert ("422" in responses) == ("requestBody" in operation or bool(operation.get("parameters"))), path
        assert "503" in responses or path == "/healthz"


def test_what_is_to_be_read_from_headers_is_named(schema: dict[str, Any]) -> None:
    responses = schema["paths"]["/jobs/{job_id}"]["patch"]["responses"]
    assert set(responses["200"]["headers"]) == {"ETag"}
    assert set(responses["429"]["headers"]) == {"Retry-After"}
    assert set(schema["paths"]["/jobs"]["post"]["responses"]["201"]["headers"]) == {"Location"}


def test_a_stream_says_what_each_of_its_events_is(schema: dict[str, Any]) -> None:
    content = schema["paths"]["/events"]["get"]["responses"]["200"]["content"]
    assert set(content["text/event-stream"]["itemSchema"]["properties"]) == {"event", "id", "data", "retry"}


def test_every_body_has_an_example_that_fits(schema: dict[str, Any]) -> None:
    with_body = {
        operation["operationId"]: operation["requestBody"]["content"]["application/json"]
        for _path, operation in operations_of(schema)
        if "requestBody" in operation
    }
    assert set(BODIES) == set(with_body)
    for operation_id, media in with_body.items():
        validator = Draft202012Validator({**media["schema"], "components": schema["components"]})
        for name, example in media["examples"].items():
            assert not list(validator.iter_errors(example["value"])), (operation_id, name)


def test_what_a_change_leaves_out_has_no_default(schema: dict[str, Any]) -> None:
    # A client that is made of the schema would send it, and so undo what somebody else has set.
    bodies = [methods["patch"]["requestBody"] for methods in schema["paths"].values() if "patch" in methods]
    names = [body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2] for body in bodies]
    assert len(names) == 3
    for name in names:
        fields = schema["components"]["schemas"][name]["properties"]
        assert [field for field, kind in fields.items() if kind.get("default") is not None] == [], name


def test_a_new_job_links_to_all_that_can_be_done_with_it(schema: dict[str, Any]) -> None:
    links = schema["paths"]["/jobs"]["post"]["responses"]["201"]["links"]
    assert {"get_job", "cancel_job", "clone_job", "list_metrics"} <= set(links)
    assert links["get_job"]["parameters"] == {"job_id": "$response.body#/id"}


def test_the_schema_is_the_same_from_one_start_to_the_next(schema: dict[str, Any]) -> None:
    assert json.dumps(create_app().openapi()) == json.dumps(schema)


def test_every_operation_answers_json_or_says_what_else(schema: dict[str, Any]) -> None:
    for _path, operation in operations_of(schema):
        for status, response in operation["responses"].items():
            if status in ("200", "201") and operation["operationId"] not in NO_JSON:
                assert "application/json" in response["content"], operation["operationId"]


def test_every_method_that_a_path_takes_is_known_to_the_header_allow(schema: dict[str, Any]) -> None:
    assert {method.upper() for methods in schema["paths"].values() for method in methods} <= set(METHODS)
