import type { FlowResponse, GraphDocument, NodeDocument, NodeTypeResponse } from "@/api/types";
import { jsonOrText } from "@/inspector/answerDraft";
import { isObject, readJson, writeJson } from "@/json";
import type { JsonSchema } from "@/ui/schema";

/** A value that a run of a flow can be given. */
export type FlowInput = {
  node: string;
  handle: string;
  label: string;
  /** The socket type of the value: "text", "json", "number", "any". */
  type: string;
  /** What the node gives without it. */
  usual: string;
  /** Of a value with fields; its text is JSON. */
  schema?: JsonSchema | undefined;
};

const DEFAULT_HANDLE = "output";

/** Returns what a run can be given: the outputs of the entry nodes that other nodes read. */
export function inputsOf(graph: GraphDocument, types: readonly NodeTypeResponse[]): FlowInput[] {
  return graph.nodes.flatMap((node) => {
    const type = types.find((each) => each.node_type === node.type);
    if (!type?.entry) return [];
    const read = graph.edges
      .filter((edge) => edge.source === node.id && edge.data.channel !== "link")
      .map((edge) => edge.sourceHandle ?? DEFAULT_HANDLE);
    const handles = read.length > 0 ? [...new Set(read)] : [DEFAULT_HANDLE];
    return handles.map((handle) => {
      const port = type.outputs.find((each) => each.name === handle);
      const name = node.name || node.id;
      const usual = node.data?.initialInput ?? node.data?.[handle];
      return {
        node: node.id,
        handle,
        label: handles.length > 1 ? `${name}, ${port?.label ?? handle}` : name,
        type: port?.type ?? "any",
        usual: typeof usual === "string" ? usual : usual == null ? "" : writeJson(usual),
        schema: objectSchema(node, handle),
      };
    });
  });
}

/** Returns the schema of what a node takes, where its values have fields that are known. */
function objectSchema({ data }: NodeDocument, handle: string): JsonSchema | undefined {
  const schema = handle === DEFAULT_HANDLE ? data?.schema : undefined;
  return isObject(schema) && isObject(schema.properties) ? schema : undefined;
}

export function inputKey({ node, handle }: FlowInput): string {
  return writeJson([node, handle]);
}

/** By the id of the node, by the handle. */
export type GivenInputs = Record<string, Record<string, unknown>>;

/** Returns the inputs of an execution; what is empty is left to the node. */
export function executionInputs(
  inputs: readonly FlowInput[],
  texts: Readonly<Record<string, string>>,
): GivenInputs {
  const given: GivenInputs = {};
  for (const input of inputs) {
    const text = texts[inputKey(input)] ?? "";
    if (text === "") continue;
    const values = given[input.node] ?? {};
    values[input.handle] = executionValue(input, text);
    given[input.node] = values;
  }
  return given;
}

function executionValue({ schema, type }: FlowInput, text: string): unknown {
  return !schema && (type === "text" || type === "any") ? text : jsonOrText(text);
}

/** Returns what the form shows for inputs that were saved: by node, or by the names of fields. */
export function textsOf(
  inputs: readonly FlowInput[],
  saved: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const input of inputs) {
    const value = savedValue(input, saved);
    if (value === undefined) continue;
    const isText = typeof value === "string" && executionValue(input, value) === value;
    texts[inputKey(input)] = isText ? value : writeJson(value);
  }
  return texts;
}

function savedValue(
  { node, handle, schema }: FlowInput,
  saved: Readonly<Record<string, unknown>>,
): unknown {
  const own = saved[node];
  if (isObject(own)) return own[handle];
  const fields = isObject(schema?.properties) ? schema.properties : {};
  const named = Object.entries(saved).filter(([name]) => name in fields);
  return named.length > 0 ? Object.fromEntries(named) : undefined;
}

export type FlowFile = Pick<FlowResponse, "name" | "description" | "graph">;

/** Returns a flow as the text of a file. */
export function flowFile({ name, description, graph }: FlowResponse): string {
  return `${writeJson({ name, description, graph }, 2)}\n`;
}

/**
 * Returns the flow that a file has: one that was exported, or a graph or plan alone.
 *
 * @throws {Error} It is no JSON, or has no graph.
 */
export function readFlowFile(text: string, fileName: string): FlowFile {
  const value = readJson(text) as Partial<FlowFile> & Partial<GraphDocument> & { title?: string };
  const graph = value?.graph ?? value;
  if (!Array.isArray(graph?.nodes) || !Array.isArray(graph.edges)) {
    throw new Error(`${fileName} has no flow: it needs "graph" with "nodes" and "edges"`);
  }
  return {
    name: value.name || value.title || fileName.replace(/\.json$/i, ""),
    description: value.description ?? "",
    graph: { nodes: graph.nodes, edges: graph.edges },
  };
}
