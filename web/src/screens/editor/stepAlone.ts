import type { DocumentNode, GraphDocument, Operations } from "@/api/types";
import { isObject } from "@/json";

type Given = Record<string, Record<string, unknown>>;
type Body = Pick<Operations["createExecution"]["body"], "inputs" | "options">;

/** Returns what runs one step alone: the steps that it depends on are settled with what they gave before.
 *
 * @param read Returns a step as it ran before, null where it did not. */
export async function stepAlone(
  graph: GraphDocument,
  id: string,
  read: (id: string) => Promise<Pick<DocumentNode, "outputs"> | null>,
): Promise<Body> {
  const settled = await Promise.all(
    stepsBefore(graph, id).map(
      async (each) => [each, valuesOf((await read(each))?.outputs)] as const,
    ),
  );
  const inputs: Given = Object.fromEntries(
    settled.filter(([, values]) => Object.keys(values).length > 0),
  );
  return { inputs, options: { run_to: [id] } };
}

/** The steps that a step depends on, and those that hold the inputs of the flow, which tasks read. */
function stepsBefore({ nodes, edges }: GraphDocument, id: string): string[] {
  const before = new Set([id]);
  for (const target of before) {
    for (const edge of edges) {
      if (edge.target === target && edge.data.channel !== "link") before.add(edge.source);
    }
  }
  before.delete(id);
  for (const node of nodes) if (node.type === "start" && node.id !== id) before.add(node.id);
  return [...before];
}

/** `{handle: {type, value}}` as `{handle: value}`. */
function valuesOf(outputs: Record<string, unknown> | null | undefined): Record<string, unknown> {
  const entries = Object.entries(outputs ?? {});
  return Object.fromEntries(
    entries.flatMap(([handle, output]) => (isObject(output) ? [[handle, output.value]] : [])),
  );
}
