import type { GraphDocument, NodeDocument } from "@/api/types";
import { isObject, readNumber } from "@/json";

/** A goal and a graph, which name the inputs of the flow in double braces. */
export type FlowTexts = { goal: string; graph: GraphDocument };

/** A text in which the words stand: the goal, or the task of a step. */
export type WordPlace = {
  /** The id of the step; null for the goal. */
  node: string | null;
  label: string;
  text: string;
  count: number;
};

/** A value of an input, as it is typed and as a run is given it. */
export type InputType = "string" | "integer" | "number";

/** What is no plain text: literals, names of inputs, and tags. */
const BRACES = /(\{% raw %\}[\s\S]*?\{% endraw %\}|\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\}|\{#[\s\S]*?#\})/;
const OPENING = /\{[{%#]/g;

/** Returns the goal and the tasks that have the words as whole words, outside of braces. */
export function placesOf({ goal, graph }: FlowTexts, words: string): WordPlace[] {
  if (words.trim() === "") return [];
  const places = [
    { node: null, label: "Goal", text: goal },
    ...graph.nodes.map((node) => ({
      node: node.id,
      label: node.name || node.id,
      text: node.description ?? "",
    })),
  ];
  return places
    .map((place) => ({ ...place, count: countOf(place.text, words) }))
    .filter(({ count }) => count > 0);
}

function countOf(text: string, words: string): number {
  return plainParts(text)
    .map((part) => [...part.matchAll(wholeWords(words))].length)
    .reduce((sum, count) => sum + count, 0);
}

/** Returns the parts of a text that are in no braces; those between them are at odd places. */
function plainParts(text: string): string[] {
  return text.split(BRACES).filter((_, index) => index % 2 === 0);
}

function wholeWords(words: string): RegExp {
  const escaped = words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\p{L}\\p{N}_])${escaped}(?![\\p{L}\\p{N}_])`, "gu");
}

/** Returns the names of the inputs that a graph declares. */
export function inputNames(graph: GraphDocument): string[] {
  return graph.nodes.flatMap((node) => Object.keys(fieldsOf(node) ?? {}));
}

function fieldsOf(node: NodeDocument): Record<string, unknown> | null {
  const schema = node.type === "start" ? node.data?.schema : undefined;
  return isObject(schema) && isObject(schema.properties) ? schema.properties : null;
}

/** Returns a name for the words, by what stands around them: "in Lisbon" is a city, "3 days" are days. */
export function nameFor(words: string, text: string, taken: readonly string[]): string {
  const name = guess(words.trim(), text);
  for (let number = 1; ; number++) {
    const tried = number === 1 ? name : `${name}_${number}`;
    if (!taken.includes(tried)) return tried;
  }
}

function guess(words: string, text: string): string {
  if (/^https?:\/\//.test(words)) return "url";
  if (/^\S+@\S+\.\S+$/.test(words)) return "email";
  if (/^\d{4}-\d\d-\d\d$/.test(words)) return "date";
  const at = text.search(wholeWords(words));
  const before = at < 0 ? "" : text.slice(0, at);
  const after = at < 0 ? "" : text.slice(at + words.length);
  if (NUMBERS.test(words)) return slug(/^\s*([\p{L}]+)/u.exec(after)?.[1] ?? "") || "number";
  const preposition = /([\p{L}]+)\s+(?:the\s+)?$/u.exec(before)?.[1]?.toLowerCase() ?? "";
  const isName = /^\p{Lu}/u.test(words);
  if (isName && PLACE_WORDS.has(preposition)) return "city";
  if (isName && PERSON_WORDS.has(preposition)) return "name";
  const own = slug(words);
  return own && !isName && own.length <= 24 ? own : "topic";
}

const NUMBERS = /^(\d+([.,]\d+)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)$/i;
const PLACE_WORDS = new Set(["in", "to", "from", "near", "at", "around", "through", "of", "visit"]);
const PERSON_WORDS = new Set(["for", "with", "by", "about"]);

function slug(words: string): string {
  const name = words
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "");
  return /^[a-z]/.test(name) ? name : "";
}

/** Why a name cannot be that of an input; undefined where it can. */
export function nameProblem(name: string, taken: readonly string[]): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    return "A name has letters, digits and _, and begins with a letter.";
  }
  if (RESERVED.has(name)) return `“${name}” has a meaning of its own in templates.`;
  return taken.includes(name) ? `There is an input “${name}” already.` : undefined;
}

const RESERVED = new Set(["input", "inputs", "nodes", "trigger", "goal", "PREVIOUS_OUTPUT"]);

export function typeOf(words: string): InputType {
  const number = readNumber(words);
  if (number === undefined) return "string";
  return /^-?\d+$/.test(words) ? "integer" : "number";
}

type MadeInput = {
  words: string;
  name: string;
  /** The places in which the words become the input: node ids, null for the goal. */
  places: readonly (string | null)[];
};

/** Returns the texts with the input in place of the words, declared with the words as its default. */
export function withInput({ goal, graph }: FlowTexts, made: MadeInput): FlowTexts {
  const { words, name, places } = made;
  const isFirst = inputNames(graph).length === 0;
  const replace = (text: string) => replaceWords(text, words, `{{ ${name} }}`);
  // Without inputs a goal is plain text; with the first one its other braces have to stay literal.
  const literal = isFirst ? escapeBraces(goal) : goal;
  const nodes = graph.nodes.map((node) =>
    places.includes(node.id) ? { ...node, description: replace(node.description ?? "") } : node,
  );
  return {
    goal: places.includes(null) ? replace(literal) : literal,
    graph: { ...graph, nodes: withField(nodes, name, words) },
  };
}

function replaceWords(text: string, words: string, by: string): string {
  return text
    .split(BRACES)
    .map((part, index) => (index % 2 === 0 ? part.replace(wholeWords(words), () => by) : part))
    .join("");
}

function escapeBraces(text: string): string {
  return text.replace(OPENING, (opening) => `{{ "${opening}" }}`);
}

function withField(nodes: NodeDocument[], name: string, words: string): NodeDocument[] {
  const type = typeOf(words);
  const field = { type, default: type === "string" ? words : readNumber(words) };
  const known = nodes.find((node) => fieldsOf(node) !== null);
  const data = {
    ...known?.data,
    schema: {
      type: "object",
      ...(isObject(known?.data?.schema) && known.data.schema),
      properties: { ...(known && fieldsOf(known)), [name]: field },
    },
  };
  if (known) return nodes.map((node) => (node === known ? { ...node, data } : node));
  const ids = nodes.map(({ id }) => id);
  let id = "inputs";
  for (let number = 2; ids.includes(id); number++) id = `inputs_${number}`;
  return [{ id, type: "start", name: "Inputs", data }, ...nodes];
}
