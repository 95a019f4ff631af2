"""What public bug reports have taught of APIs like this one: each case with its outcome, and the tests that hold it."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CASES = {
    "`../`, `%2e%2e%2f`, NUL or an absolute path in the name of an artifact: 404 or 422, and no bytes": (
        "integration/test_api_checkpoints.py::test_what_is_no_id_of_a_checkpoint_leads_nowhere",
        "integration/test_api_limits.py::test_no_path_leads_to_a_file_of_the_machine",
        "unit/test_beneath.py::test_a_path_that_leads_elsewhere_is_refused_by_its_words",
    ),
    "a link out of the folder in the place of an artifact: no bytes, and nothing behind it is removed": (
        "integration/test_api_checkpoints.py::"
        "test_no_link_no_other_file_and_no_folder_is_served_in_the_place_of_a_checkpoint",
        "integration/test_api_checkpoints.py::"
        "test_a_file_on_a_folder_that_is_not_there_waits_and_a_link_in_its_way_is_not_followed",
        "unit/test_beneath.py::test_a_link_a_pipe_and_a_folder_are_not_opened",
    ),
    "a chunked body of 1 GB: 413, with flat memory": (
        "integration/test_api_limits.py::test_a_chunked_body_of_a_gigabyte_is_refused_with_flat_memory",
    ),
    "JSON nested 100,000 deep: 422, with flat memory": (
        "integration/test_api_limits.py::test_json_nested_100_000_deep_is_refused_with_flat_memory",
    ),
    "a webhook to a loopback, link-local or private address: refused where it is connected to, unless allowed": (
        "integration/test_outbound.py::test_no_spelling_of_a_loopback_address_leads_to_it",
        "integration/test_outbound.py::test_a_private_or_link_local_address_is_refused_before_anything_is_sent",
        "integration/test_outbound.py::test_a_name_that_leads_to_a_loopback_address_is_refused",
        "integration/test_webhook_delivery.py::test_an_address_that_is_not_allowed_is_told_in_the_log_of_deliveries",
        "unit/test_addresses.py::test_an_operator_allows_hosts_addresses_and_networks",
    ),
    "a webhook that redirects to such an address: not followed": (
        "integration/test_outbound.py::test_a_redirect_is_not_followed",
        "integration/test_webhook_delivery.py::test_a_redirect_is_a_failure_that_leads_nowhere",
    ),
    "200 clients of event streams that vanish: sessions, threads and memory back at the baseline": (
        "integration/test_api_stream_load.py::test_two_hundred_streams_that_vanish_leave_nothing_behind",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_case_has_its_tests(case: str) -> None:
    for place in CASES[case]:
        module, _, name = place.partition("::")
        tree = ast.parse((TESTS / module).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, place
