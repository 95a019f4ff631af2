"""What the pages show and tests/e2e/test_docs_commands.py does not run: which test does, or why none can."""

PAGES = {
    "docs/access.md": "tests/integration/test_access_page.py::test_every_command_of_the_page_of_access_works",
    "docs/client.md": "tests/integration/test_client_page.py::test_every_block_runs_after_the_one_before_it",
    "docs/deploy.md": "tests/integration/test_deploy_page.py::"
    "test_the_page_leads_from_the_first_setting_to_a_restored_backup",
    "docs/recipes.md": "tests/unit/test_recipes_page.py::test_each_block_is_a_part_of_the_example",
    "examples/next-byte-recipe/README.md": "tests/distributed/test_recipe_package.py::"
    "test_an_installed_recipe_is_in_the_catalog_and_trains_by_its_name_on_two_ranks",
    "examples/pipeline/README.md": "tests/e2e/test_pipeline_example.py::"
    "test_the_pipeline_is_told_of_its_job_and_finds_the_accuracy_that_the_job_reported",
}
"""Whole pages, by the test that follows them."""

IN_TESTS = {
    "make demo": "tests/e2e/test_demo.py::test_the_demo_prints_one_json_object_with_a_trained_and_reloaded_accuracy",
    "make up": "tests/faults/test_embedded.py::test_nothing_is_alive_soon_after_a_sigkill_of_the_first_process",
    "make up ARGS='--simulated-devices 2'": "tests/faults/test_embedded.py::"
    "test_nothing_is_alive_soon_after_a_sigkill_of_the_first_process",
    'curl -sN "http://127.0.0.1:8000/events?topics=jobs,metrics"': "tests/integration/test_api_stream.py::"
    "test_the_command_on_the_page_of_streams_follows",
    "curl -X POST http://127.0.0.1:8000/webhooks -H 'Content-Type: application/json' \\": "tests/integration/"
    "test_api_webhooks.py::test_the_command_of_the_page_registers_a_webhook",
    "from http.server import BaseHTTPRequestHandler, HTTPServer": "tests/integration/test_webhooks_page.py::"
    "test_the_receiver_of_the_page_takes_what_is_signed_with_its_key_and_nothing_else",
    "python -m api": "tests/integration/test_api_traces.py::"
    "test_a_request_is_a_span_of_its_callers_trace_with_its_id_and_probes_are_none",
    "torchrun --nproc-per-node 2 -m trainer train.yaml": "tests/distributed/test_launch_paths.py::"
    "test_a_script_the_command_and_torchrun_learn_digits_to_97_percent_and_write_the_same_journal",
    "from trainer import train": "tests/distributed/test_launch_paths.py::"
    "test_a_script_the_command_and_torchrun_learn_digits_to_97_percent_and_write_the_same_journal",
    "python -m trainer train.yaml": "tests/distributed/test_launch_paths.py::"
    "test_a_script_the_command_and_torchrun_learn_digits_to_97_percent_and_write_the_same_journal",
    "python -m trainer parity train.yaml --world-sizes 1,2,4": "tests/distributed/test_parity.py::"
    "test_a_model_with_batchnorm_trains_the_same_on_one_two_and_four_ranks",
    "python -m trainer advise train.yaml": "tests/distributed/test_advise.py::"
    "test_a_training_that_waits_for_its_input_is_told_so_with_its_pace_batch_and_learning_rate",
    "python -m trainer catalog": "tests/distributed/test_launch_paths.py::"
    "test_the_catalog_names_recipes_models_data_and_options",
    "python -m trainer.bench": "tests/distributed/test_bench.py::"
    "test_the_first_images_of_cifar10_are_taken_where_fewer_are_asked_for",
    "python -m trainer.bench --synthetic --device cpu": "tests/distributed/test_bench.py::"
    "test_a_line_has_the_epochs_of_the_trainer_and_of_the_plain_loop_from_one_run",
    "python -m trainer train.yaml --hang-limit-s 600": "tests/distributed/test_hangs.py::"
    "test_a_rank_whose_loader_is_stuck_is_named_with_the_loader_s_stack",
    "python -m trainer train.yaml --nnodes 2 --node-rank 0 --master-addr alpha --master-port 29400": "tests/"
    "distributed/test_nodes.py::test_the_command_takes_torchruns_words_and_a_port_that_another_program_has_is_refused",
    "python -m trainer train.yaml --nnodes 2 --node-rank 1 --master-addr alpha --master-port 29400": "tests/"
    "distributed/test_nodes.py::test_the_command_takes_torchruns_words_and_a_port_that_another_program_has_is_refused",
    "python -m jobs.simulate": "tests/unit/simulation/test_simulate.py::"
    "test_the_report_says_waits_bound_and_planning_time",
}
"""Commands and programs, by the first line, whatever page they are on: the test that runs the same."""

NOWHERE = {
    "make check": "it is what runs beside the tests",
    "make audit": "it is what runs beside the tests",
    "make test": "it is what runs this",
    "make dashboard": "it is what runs before the tests; tests/integration/test_dashboard_build.py has it",
    "make dist": "tests/integration/test_dashboard.py makes a wheel; this one would be left in the folder",
    "make format": "it changes the files that are tested",
    "make faults": "an hour; its parts are tests/faults/test_matrix.py and test_races.py",
    "make faults ARGS='-k supervisor --instants 1 -n 2'": "minutes; tests/faults/test_matrix.py has its faults",
    "make sequences": "half an hour; it is tests/faults/test_sequences.py at length",
    "make chaos": "hours; it is tests/faults/test_chaos.py at length",
    "make bench": "minutes; tests/unit/test_benchmarks.py holds what it starts",
    ". .venv/bin/activate": "the environment of the tests is active",
    "pip install 'rankzero[s3]'": "a test installs nothing",
    "pip install 'rankzero[otel]'": "a test installs nothing",
    "import rankzero": "a fragment, whose names are a training loop's; examples/ddp_script.py has it whole",
}
"""Those that no test runs as they stand, and why."""
