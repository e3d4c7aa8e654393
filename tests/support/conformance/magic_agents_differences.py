"""Where flows of magic_agents behave otherwise here, with the reason and with what happens instead."""

from __future__ import annotations

from tests.support.conformance.recordings import Difference

_JSON = "A text shows an object as JSON, not as Python writes it."
_ONLY_BUILT = (
    "Only the check of the flow was recorded: the wire is left out here as well, and the rest runs."
)
_WAITED = "A handle of the older version counts as the output, instead of being waited for until the timeout."
_SKIPPED = "A step on a branch that is not taken gives nothing, instead of an empty text."
_NO_FLOW = "A step without a flow inside is a placeholder, which is refused before anything runs."
_EACH_ITEM = (
    "Every step in a loop runs for each item, instead of giving its first result again and again."
)
_FROMJSON = "The filter fromjson is there, instead of failing the step that uses it."
_BRANCH_VALUE = "A branch gets what arrived at the choice, not the record of how it was made."

DIFFERENCES: dict[str, Difference] = {
    "magic_agents/current/build_invalid_edge_source": Difference(
        _ONLY_BUILT, {"outputs": {"input": "test"}}
    ),
    "magic_agents/current/build_invalid_edge_target": Difference(
        _ONLY_BUILT, {"outputs": {"input": "test"}}
    ),
    "magic_agents/current/build_preserves_validation_errors": Difference(
        "A flow without a user_input is run all the same, and the report says that it did not run there.",
        {"outputs": {"txt": "hello"}},
    ),
    "magic_agents/current/build_self_loop_edge": Difference(
        _ONLY_BUILT, {"outputs": {"input": "test"}}
    ),
    "magic_agents/current/conditional_inside_loop_exclusive_branch_execution": Difference(
        _JSON,
        {
            "outputs": {
                "parser_yes": 'YES: {"handle_parser_input":"yes_item"}',
                "format": 'Results: YES: {"handle_parser_input":"yes_item"} | YES: {"handle_parser_input":"yes_item"}',
                "loop": [
                    'YES: {"handle_parser_input":"yes_item"}',
                    'YES: {"handle_parser_input":"yes_item"}',
                ],
            }
        },
    ),
    "magic_agents/current/conditional_inside_loop_exclusive_branch_no_item_path": Difference(
        _JSON,
        {
            "outputs": {
                "parser_no": 'NO: {"handle_parser_input":"no_item"}',
                "format": 'Results: NO: {"handle_parser_input":"no_item"} | NO: {"handle_parser_input":"no_item"}',
                "loop": [
                    'NO: {"handle_parser_input":"no_item"}',
                    'NO: {"handle_parser_input":"no_item"}',
                ],
            }
        },
    ),
    "magic_agents/current/conditional_inside_loop_iteration": Difference(
        _JSON,
        {
            "outputs": {
                "parser_yes": 'YES: {"handle_parser_input":"yes_item"}',
                "parser_no": 'NO: {"handle_parser_input":"no_item"}',
                "format": 'Results: YES: {"handle_parser_input":"yes_item"} | NO: {"handle_parser_input":"no_item"}',
                "loop": [
                    'YES: {"handle_parser_input":"yes_item"}',
                    'NO: {"handle_parser_input":"no_item"}',
                ],
            }
        },
    ),
    "magic_agents/current/deeply_nested_inner_flows": Difference(
        _WAITED, {"outputs": {"inner-node": "", "final-parser": "[L1: ]"}}
    ),
    "magic_agents/current/empty_input_sendmessage": Difference(
        _SKIPPED, {"outputs": {"llm-node": None}}
    ),
    "magic_agents/current/inner_graph_error_propagates_as_debug_event": Difference(
        "A template that always failed is a placeholder, which is refused before anything runs.",
        {"refused": ["placeholder"]},
    ),
    "magic_agents/current/inner_node_missing_inner_graph_error": Difference(
        _NO_FLOW, {"refused": ["placeholder"]}
    ),
    "magic_agents/current/magic_flow_missing_edges_produces_configuration_error": Difference(
        _NO_FLOW, {"refused": ["placeholder"]}
    ),
    "magic_agents/current/magic_flow_missing_nodes_produces_configuration_error": Difference(
        _NO_FLOW, {"refused": ["placeholder"]}
    ),
    "magic_agents/current/multiple_loop_nodes_only_first_handled": Difference(
        "Each loop of a flow runs, not only the first one: the body of the second does not run once without an item.",
        {"outputs": {"transform2": None}},
    ),
    "magic_agents/current/run_agent_extras_does_not_override_built_extras": Difference(
        _JSON, {"outputs": {"parser": 'SOURCE: {"source":"build_path","priority":"high"}'}}
    ),
    "magic_agents/current/run_agent_extras_injected_into_prebuilt_graph": Difference(
        _JSON,
        {
            "outputs": {
                "parser": 'EXTRAS_OK: {"user_id":"run_agent_user","source":"run_agent_path"}'
            }
        },
    ),
    "magic_agents/current/timeout_simulation": Difference(
        _WAITED,
        {
            "outputs": {
                "user-input": "Test timeout handling",
                "parser-node": "Processed: Test timeout handling",
            }
        },
    ),
    "magic_agents/legacy/complex_loop_with_conditional_exit": Difference(
        _EACH_ITEM,
        {
            "outputs": {
                "llm-node": "ECHO(sys='',user='Process this task: task5\\n')",
                "final-parser": "Task Processing Summary:\nTotal tasks processed: 5\n\nTask 1: ECHO(sys='',user='Process this task: task1\\n')\n\nTask 2: ECHO(sys='',user='Process this task: task2\\n')\n\nTask 3: ECHO(sys='',user='Process this task:...\n\nTask 4: ECHO(sys='',user='Process this task: task4\\n')\n\nTask 5: ECHO(sys='',user='Process this task: task5\\n')\n",
                "item-processor": "Process this task: task5\n",
                "loop-node": [
                    "ECHO(sys='',user='Process this task: task1\\n')",
                    "ECHO(sys='',user='Process this task: task2\\n')",
                    "ECHO(sys='',user='Process this task: urgent_task\\n\\nURGENT: This requires immediate attention!\\n')",
                    "ECHO(sys='',user='Process this task: task4\\n')",
                    "ECHO(sys='',user='Process this task: task5\\n')",
                ],
            }
        },
    ),
    "magic_agents/legacy/complex_routing_flow": Difference(
        _FROMJSON,
        {
            "outputs": {
                "llm-node": "ECHO(sys='',user='\\n[Route: short] Expand this short message: Hi there')",
                "format-parser": "\n[Route: short] Expand this short message: Hi there",
            },
            "shown": "ECHO(sys='',user='\\n[Route: short] Expand this short message: Hi there')",
        },
    ),
    "magic_agents/legacy/deeply_nested_inner_flows_fixed": Difference(
        "The texts of flows inside are seen by people too, not only what the outermost flow makes of them.",
        {"shown": "L3 processedL2 processedL1 processed"},
    ),
    "magic_agents/legacy/dynamic_flow_construction": Difference(
        _FROMJSON,
        {
            "outputs": {
                "config-parser": "You are a programming expert",
                "dynamic-llm": "ECHO(sys='You are a programming expert',user='Write code to sort an array')",
            },
            "shown": "ECHO(sys='You are a programming expert',user='Write code to sort an array')",
        },
    ),
    "magic_agents/legacy/empty_input_handling_with_conditional": Difference(
        _BRANCH_VALUE, {"outputs": {"cond-check": {"empty": {"handle_input": "", "value": ""}}}}
    ),
    "magic_agents/legacy/empty_input_sendmessage": Difference(
        _BRANCH_VALUE,
        {"outputs": {"llm-node": None, "cond": {"empty": {"handle_input": "", "value": ""}}}},
    ),
    "magic_agents/legacy/loop_with_parser_transformation": Difference(
        _EACH_ITEM,
        {
            "outputs": {
                "result-formatter": "Loop Processing Results:\nTotal colors processed: 3\n\n- Color: RED\n\n- Color: BLUE\n\n- Color: GREEN\n",
                "item-transformer": "Color: GREEN",
                "loop-node": ["Color: RED", "Color: BLUE", "Color: GREEN"],
            }
        },
    ),
    "magic_agents/legacy/loop_with_sendmessage_aggregation": Difference(
        _EACH_ITEM,
        {
            "outputs": {
                "result-formatter": "Loop Results:\nTotal items: 3\n\n- Processed APPLE\n\n- Processed BANANA\n\n- Processed CHERRY\n",
                "item-processor": "Processed CHERRY",
                "loop-node": ["Processed APPLE", "Processed BANANA", "Processed CHERRY"],
            }
        },
    ),
    "magic_agents/legacy/nested_loop_with_aggregation": Difference(
        _EACH_ITEM,
        {
            "outputs": {
                "llm-node": "ECHO(sys='',user='Describe Go in one sentence')",
                "aggregator-parser": "Summarize these descriptions: ECHO(sys='',user='Describe Python in one sentence'), ECHO(sys='',user='Describe JavaScript in one sentence'), ECHO(sys='',user='Describe Go in one sentence')",
                "item-parser": "Describe Go in one sentence",
                "final-llm": "ECHO(sys='',user=\"Summarize these descriptions: ECHO(sys='',user='Describe Python in one sentence'), ECHO(sys='',user='Describe JavaScript in one sentence'), ECHO(sys='',user='Describe Go in one sentence')\")",
                "loop-node": [
                    "ECHO(sys='',user='Describe Python in one sentence')",
                    "ECHO(sys='',user='Describe JavaScript in one sentence')",
                    "ECHO(sys='',user='Describe Go in one sentence')",
                ],
            },
            "shown": "ECHO(sys='',user=\"Summarize these descriptions: ECHO(sys='',user='Describe Python in one sentence'), ECHO(sys='',user='Describe JavaScript in one sentence'), ECHO(sys='',user='Describe Go in one sentence')\")",
        },
    ),
    "magic_agents/legacy/run_agent": Difference(
        "The recorded run was given up after its first step; here it searches and answers.",
        {
            "outputs": {
                "llm-rewrite": {"query": "entropy"},
                "fetch": {
                    "organic": [{"title": "T", "snippet": "S", "link": "L", "imageUrl": "I"}]
                },
                "llm-final": "ECHO(sys='using the next XML information <search_results><result>"
                "<title>T</title><link>L</link><snippet>S</snippet></result></search_results> "
                "respond the user question',user='que es la entropia?, dame las referencias')",
            }
        },
    ),
    "magic_agents/legacy/run_agent_loop": Difference(
        "The recorded run was given up after its first step; here the model is asked for each item.",
        {
            "outputs": {
                "77984a46-f85c-4fb4-917a-787058bdafae": "ECHO(sys='Describe the content',user='[\"ECHO(sys=\\'Write N times the user input\\',user=\\'1\\')\", \"ECHO(sys=\\'Write N times the user input\\',user=\\'2\\')\", \"ECHO(sys=\\'Write N times the user input\\',user=\\'3\\')\"]')",
                "feb1223d-8f98-43cb-b428-2a87714fce41": "Describe the content",
                "bb3c62ae-396c-4743-9f61-71064f19b65f": "ECHO(sys='Write N times the user input',user='3')",
                "3cd55aef-e446-4614-8fe4-9310dbe77cca": [
                    "ECHO(sys='Write N times the user input',user='1')",
                    "ECHO(sys='Write N times the user input',user='2')",
                    "ECHO(sys='Write N times the user input',user='3')",
                ],
                "7a8ee9ee-adc3-4472-a53a-921f7ced36a0": "[1,2,3]",
            },
            "shown": "ECHO(sys='Write N times the user input',user='1')ECHO(sys='Write N times the user input',user='2')ECHO(sys='Write N times the user input',user='3')ECHO(sys='Describe the content',user='[\"ECHO(sys=\\'Write N times the user input\\',user=\\'1\\')\", \"ECHO(sys=\\'Write N times the user input\\',user=\\'2\\')\", \"ECHO(sys=\\'Write N times the user input\\',user=\\'3\\')\"]')",
        },
    ),
    "magic_agents/legacy/send_message_with_extras": Difference(
        "A message passes its input on, where the older engine passed on nothing and the model was not asked.",
        {
            "outputs": {
                "llm-node": 'ECHO(sys=\'\',user=\'{"metadata": {"source": "user", "timestamp": "2024-01-01", "message": "Hello with metadata"}}\')'
            },
            "shown": 'Processing message with metadataECHO(sys=\'\',user=\'{"metadata": {"source": "user", "timestamp": "2024-01-01", "message": "Hello with metadata"}}\')',
        },
    ),
}
