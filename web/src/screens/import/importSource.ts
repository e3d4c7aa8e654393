import { ApiError } from "@/api/http";
import type { GraphDocument, ImportReport, ImportResponse } from "@/api/types";
import { readJson } from "@/json";
import { readPlan } from "@/screens/editor/readPlan";
import { readFlowFile } from "@/screens/flows/flowInputs";

/** A text to be imported; `fileName` is empty where it was pasted. */
export type Source = { text: string; fileName: string };

/** A graph to be opened or saved. */
export type NamedGraph = {
  /** Of a flow that is made of it. */
  name: string;
  description: string;
  title: string | undefined;
  graph: GraphDocument;
  /** What became of the file of another program that it was. */
  report?: ImportReport;
};

/** The largest file that is read into the page; the service has a limit of its own. */
const MAX_BYTES = 16 * 1024 * 1024;
const UNNAMED = "Imported flow";

/**
 * Reads a file as text.
 *
 * @throws {Error} It is too large, or no text.
 */
export async function readSource(file: File): Promise<Source> {
  if (file.size > MAX_BYTES) throw new Error(`${file.name} has more than 16 MB`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return { text, fileName: file.name };
  } catch {
    throw new Error(`${file.name} is not a text in UTF-8`);
  }
}

/** Returns the graph of a file of planwave, with the name that the file gives it. */
export function ownGraph(source: Source, answer: ImportResponse): NamedGraph {
  return readOwn(source) ?? documentGraph(source, answer);
}

/** Returns the graph that a file of another program became. */
export function importedGraph(source: Source, answer: ImportResponse): NamedGraph {
  return { ...documentGraph(source, answer), report: answer.report };
}

function documentGraph({ fileName }: Source, { document }: ImportResponse): NamedGraph {
  const { title, nodes, edges } = document;
  const name = title || stemOf(fileName) || UNNAMED;
  return { name, description: "", title, graph: { nodes, edges } };
}

/** Returns the graph of a file that only planwave can have written, though its shape does not tell:
 * such as one without nodes. Undefined for others. */
export function undetectedGraph(source: Source, error: unknown): NamedGraph | undefined {
  const isUnknown = error instanceof ApiError && error.code === "unknown-format";
  return isUnknown ? readOwn(source) : undefined;
}

function readOwn({ text, fileName }: Source): NamedGraph | undefined {
  try {
    const read = readPlan(readJson(text));
    if ("problem" in read) return undefined;
    const { name, description, graph } = readFlowFile(text, stemOf(fileName) || UNNAMED);
    return { name, description, title: read.title, graph };
  } catch {
    return undefined; // YAML
  }
}

function stemOf(fileName: string): string {
  return fileName.replace(/\.[^.]*$/, "");
}
