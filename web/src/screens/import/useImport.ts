import { useState } from "react";
import { ApiError } from "@/api/http";
import { useImportFile } from "@/api/mutations";
import type { ImportResponse } from "@/api/types";
import { OWN_KIND } from "./importReport";
import {
  importedGraph,
  type NamedGraph,
  ownGraph,
  readSource,
  type Source,
  undetectedGraph,
} from "./importSource";

/** What is done with an import outside of its dialog. What these throw is told in it. */
export type ImportTarget = {
  /** Takes a graph of planwave as it is. */
  onOwn: (graph: NamedGraph) => Promise<void>;
  /** Opens a graph in the editor, whatever errors it has. */
  onOpen: (graph: NamedGraph) => Promise<void>;
  /** Makes a flow of a graph of planwave, or a draft where it has errors. */
  onSave: (graph: NamedGraph) => Promise<void>;
  /** A flow was made of a file of another program. */
  onSaved: (flowId: string, name: string) => void;
  onClose: () => void;
};

/** How a file is read. */
export type ImportOptions = {
  /** The kind that it is to be read as; null where its shape tells. */
  kind: string | null;
  /** Whether its programs become node types of a module. */
  write_code: boolean;
  /** Asked in place of each provider that the file names; null: as in the file. */
  provider: string | null;
  /** A model of it; null for its default. */
  model: string | null;
};

/** A file as it was read, and what became of it. */
export type Imported = {
  source: Source;
  options: ImportOptions;
  answer: ImportResponse;
  graph: NamedGraph;
};

export type Import = ReturnType<typeof useImport>;

const AS_IT_IS: ImportOptions = { kind: null, write_code: false, provider: null, model: null };
const NOTHING: Source = { text: "", fileName: "" };

/** A text that is imported, what became of it, and what failed last. */
export function useImport(target: ImportTarget) {
  const [source, setSource] = useState(NOTHING);
  const [kind, setKind] = useState<string | null>(null);
  const [kinds, setKinds] = useState<readonly string[]>([]);
  const [imported, setImported] = useState<Imported | null>(null);
  const { run, error, setError, isBusy } = useTask((fault) => setKinds(kindsIn(fault) ?? kinds));
  const importFile = useImportFile();

  const change = (next: Source) => {
    setSource(next);
    setKind(null);
    setKinds([]);
    setError(null);
  };
  const take = async (graph: NamedGraph) => {
    await target.onOwn(graph);
    target.onClose();
  };
  const convert = async (text: Source, options: ImportOptions) => {
    const body = { text: text.text, ...options };
    const answer = await importFile.mutateAsync(body).catch((fault: unknown) => {
      const own = options.kind === null ? undetectedGraph(text, fault) : undefined;
      if (!own) throw fault;
      return own;
    });
    if (!("document" in answer)) return take(answer);
    const isOwn = answer.report.kind === OWN_KIND;
    const graph = (isOwn ? ownGraph : importedGraph)(text, answer);
    const found = { source: text, options, answer, graph };
    if (!isOwn) return setImported(found);
    await take(graph).catch((fault: unknown) => {
      setImported(found);
      throw fault;
    });
  };
  return {
    source,
    kind,
    kinds,
    imported,
    error,
    isBusy,
    change,
    setKind,
    readFile: (file: File) =>
      run(async () => {
        const read = await readSource(file);
        change(read);
        await convert(read, AS_IT_IS);
      }),
    readText: () => run(() => convert(source, { ...AS_IT_IS, kind })),
    /** Imports it once more, in another way. */
    again: (from: Imported, changed: Partial<ImportOptions>) =>
      run(() => convert(from.source, { ...from.options, ...changed })),
    open: ({ graph }: Imported) =>
      run(async () => {
        await target.onOpen(graph);
        target.onClose();
      }),
    save: (from: Imported, name: string) =>
      run(async () => {
        if (from.answer.report.kind === OWN_KIND) await target.onSave({ ...from.graph, name });
        else {
          const body = { text: from.source.text, ...from.options };
          const { saved } = await importFile.mutateAsync({ ...body, save_as_flow: name });
          if (saved !== null) target.onSaved(saved, name);
        }
        target.onClose();
      }),
    restart: () => {
      setImported(null);
      setError(null);
    },
  };
}

/** One task at a time, and what the last one has thrown. */
function useTask(onFailed: (fault: unknown) => void) {
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const run = async (task: () => Promise<void>) => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await task();
    } catch (fault) {
      setError(fault instanceof Error ? fault : new Error(String(fault)));
      onFailed(fault);
    } finally {
      setBusy(false);
    }
  };
  return { run, error, setError, isBusy };
}

/** Returns the kinds that a file may be read as, where its shape does not tell. */
function kindsIn(fault: unknown): readonly string[] | undefined {
  return (fault instanceof ApiError && fault.problem?.kinds) || undefined;
}
