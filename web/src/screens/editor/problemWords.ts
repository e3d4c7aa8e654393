import type { DiagnosticResponse, GraphDocument } from "@/api/types";
import { labelOf } from "@/ui/schema";

/** A field of a node's data, as diagnostics call it. */
const FIELD = /\bdata((?:\.[A-Za-z_]\w*|\.\d+)+)/g;
const HANDLE = /connect an edge to (?:the handle )?'([\w.-]+)'/g;
const QUOTED = /'([\w.-]+)'/g;

/** Returns what a diagnostic says, and the way out, in the words of the page: fields by their labels, steps
 * by their names, wires. */
export function problemWords(
  { message, hint, suggestion }: Pick<DiagnosticResponse, "message" | "hint" | "suggestion">,
  graph: GraphDocument,
): string {
  const words = hint && !suggestion ? `${message} (${hint})` : message;
  return words
    .replace(HANDLE, (_, name: string) => `connect a wire to ${label(name)}`)
    .replace(FIELD, (_, path: string) => path.slice(1).split(".").map(part).join(", "))
    .replace(QUOTED, (quoted, id: string) => {
      const name = graph.nodes.find((node) => node.id === id)?.name;
      return name ? `“${name}”` : quoted;
    });
}

/** "0" is the first of a list. */
function part(name: string): string {
  return /^\d+$/.test(name) ? `number ${Number(name) + 1}` : label(name);
}

function label(name: string): string {
  return `“${labelOf(name, undefined)}”`;
}
