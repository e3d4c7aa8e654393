import { useEffect, useRef } from "react";
import type { GraphDocument, NodeTypeResponse } from "@/api/types";
import { readJson, writeJson } from "@/json";
import { isTyping, useShortcuts } from "@/ui/shortcuts";
import { showToast } from "@/ui/toasts";
import type { EditorStore } from "./editorStore";
import type { FixedSteps } from "./fixedSteps";
import { FIRST_GRAPH, partOf, paste, removeEdges, removeNodes } from "./graphEdits";
import { type WireStart, withNewStep } from "./newStep";
import type { PortLookup } from "./ports";
import { readPlan } from "./readPlan";

/** The kind of text that a copied part of a plan has on the clipboard. */
const CLIPBOARD_KIND = "planwave-graph";

/** What Ctrl Enter does, as the list of keys says it. */
export type EnterCommand = { does: string; run: () => void };

/** What the editor does by its buttons and keys. */
export function useEditorCommands(
  store: EditorStore,
  onEnter: EnterCommand,
  portsOf: PortLookup,
  fixed: FixedSteps,
) {
  const graph = () => store.getState().content.graph;
  const selection = () => store.getState().selection;

  /** Adds a step where a wire was dropped, else after the selected one. */
  const add = (type: NodeTypeResponse, start: WireStart | null = null) => {
    const [selected, ...others] = graph().nodes.filter(({ id }) => selection().has(id));
    const after = selected && others.length === 0 ? { node: selected.id } : null;
    const made = withNewStep(graph(), type, start ?? after, portsOf);
    store.changeGraph(made.graph);
    store.select([made.id]);
  };
  const remove = (ids: Iterable<string>) => {
    const chosen = new Set(ids);
    const kept = [...chosen].find((id) => fixed.get(id)?.canRemove === false);
    if (kept !== undefined) {
      const name = graph().nodes.find(({ id }) => id === kept)?.name || kept;
      showToast({ kind: "error", text: `“${name}” stays: ${fixed.get(kept)?.why}.` });
      return;
    }
    store.changeGraph(removeEdges(removeNodes(graph(), chosen), chosen));
    store.select([]);
  };
  const put = (copied: ReturnType<typeof partOf>) => {
    const pasted = paste(graph(), copied);
    store.changeGraph(pasted.graph);
    store.select(pasted.ids);
  };
  const duplicate = () => put(partOf(graph(), selection()));
  useClipboard(() => partOf(graph(), selection()), put);
  const begin = () => {
    store.changeGraph(FIRST_GRAPH);
    store.select(["agent"]);
  };
  const tidyUp = () =>
    store.changeGraph({
      ...graph(),
      nodes: graph().nodes.map(({ ui, ...node }) => {
        if (!ui) return node;
        const { position: _, ...others } = ui;
        return { ...node, ui: others };
      }),
    });

  useShortcuts("The editor", [
    { keys: "mod+enter", ...onEnter },
    { keys: "mod+z", does: "Undo", run: store.undo },
    { keys: "mod+shift+z", does: "Redo", run: store.redo },
    { keys: "mod+c", does: "Copy the selected steps" },
    { keys: "mod+v", does: "Paste them" },
    { keys: "mod+d", does: "Duplicate them", run: duplicate },
    { keys: "delete", does: "Remove them", run: () => remove(selection()) },
    { keys: "backspace", does: "Remove them too", run: () => remove(selection()) },
    { keys: "escape", does: "Select nothing", run: () => store.select([]) },
  ]);
  return { add, remove, duplicate, tidyUp, begin };
}

/** Copies and pastes steps by the events of the browser: they need no permission and no HTTPS. */
function useClipboard(copied: () => GraphDocument, put: (part: GraphDocument) => void) {
  const latest = useRef({ copied, put });
  latest.current = { copied, put };
  useEffect(() => {
    const copy = (event: ClipboardEvent) => {
      const part = latest.current.copied();
      const isText = isTyping(event.target) || !document.getSelection()?.isCollapsed;
      if (isText || part.nodes.length === 0) return;
      event.clipboardData?.setData("text/plain", writeJson({ kind: CLIPBOARD_KIND, ...part }));
      event.preventDefault();
    };
    const paste = (event: ClipboardEvent) => {
      const part = readCopied(event.clipboardData?.getData("text/plain") ?? "");
      if (isTyping(event.target) || !part) return;
      event.preventDefault();
      latest.current.put(part);
    };
    document.addEventListener("copy", copy);
    document.addEventListener("paste", paste);
    return () => {
      document.removeEventListener("copy", copy);
      document.removeEventListener("paste", paste);
    };
  }, []);
}

function readCopied(text: string): GraphDocument | null {
  try {
    const read = readPlan(readJson(text));
    return "graph" in read ? read.graph : null;
  } catch {
    return null;
  }
}
