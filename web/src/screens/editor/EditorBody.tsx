import { type ReactNode, useCallback, useDeferredValue, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useStore } from "zustand";
import { useNodeTypes } from "@/api/queries";
import type { CheckResponse, GraphDocument, NodeDocument } from "@/api/types";
import { linkColours, socketColours } from "@/canvas/socketColours";
import { writeJson } from "@/json";
import { Button } from "@/ui/Button";
import type { DroppedWire } from "./AddStep";
import { EditorCanvas, type NodeMarks } from "./EditorCanvas";
import styles from "./EditorScreen.module.css";
import { EditorTools } from "./EditorTools";
import type { EditorStore } from "./editorStore";
import { type FixedSteps, NOTHING_FIXED } from "./fixedSteps";
import { JsonField } from "./JsonField";
import { NodePanel } from "./NodePanel";
import { portLookup } from "./ports";
import { RevisionDiff } from "./RevisionDiff";
import { readPlan } from "./readPlan";
import { TableView } from "./TableView";
import type { Comparison } from "./useComparison";
import { type EnterCommand, useEditorCommands } from "./useEditorCommands";

export type EditorView = "canvas" | "table" | "json";

export type EditorBodyProps = {
  store: EditorStore;
  view: EditorView;
  onEnter: EnterCommand;
  /** Changes the id of a step wherever it is named; without it, ids stay. */
  onRename?: (id: string, to: string) => Promise<void>;
  /** What can be done with words of a task. */
  onWords?: (words: string) => ReactNode;
  /** What a step did when it ran last. */
  lastRun?: (id: string) => ReactNode;
  check: CheckResponse | undefined;
  comparison: Pick<Comparison, "nodes"> & Partial<Comparison>;
  /** The steps that stay as they are, of a plan that is run. */
  fixed?: FixedSteps;
};

/** The plan as a canvas, a table or JSON, and the form of the selected step beside it. */
export function EditorBody(props: EditorBodyProps) {
  const { store, view, onEnter, onRename, onWords, lastRun, check, comparison } = props;
  const { fixed = NOTHING_FIXED } = props;
  const before = comparison.nodes;
  const { content, selection } = useStore(store);
  const { graph } = content;
  const types = useNodeTypes();
  const portsOf = useMemo(() => portLookup(types.data, check), [types.data, check]);
  const commands = useEditorCommands(store, onEnter, portsOf, fixed);
  const [selected] = graph.nodes.filter((node) => selection.has(node.id));
  const panel = useRef<HTMLElement>(null);
  const open = useCallback(
    (id: string) => {
      flushSync(() => store.select([id]));
      panel.current?.focus();
    },
    [store],
  );
  const close = () => {
    const id = selected?.id ?? "";
    // Before the next key: a focus set later would close the list of types that N has opened.
    flushSync(() => store.select([]));
    stepButton(id)?.focus();
  };
  return (
    <div className={styles.work} data-panel={selected !== undefined && view !== "json"}>
      <div className={styles.stage}>
        <Stage
          {...{ store, view, check, before, portsOf, commands, open, fixed }}
          types={types.data}
        />
        {comparison.isShown && comparison.diff && (
          <RevisionDiff diff={comparison.diff} graph={graph} onClose={() => comparison.close?.()} />
        )}
      </div>
      {selected && view !== "json" && (
        <NodePanel
          key={selected.id}
          ref={panel}
          graph={graph}
          node={selected}
          imported={content.imported}
          fixed={fixed.get(selected.id)}
          before={before.find((node) => node.id === selected.id)}
          type={types.data?.node_types.find((type) => type.node_type === selected.type)}
          diagnostics={(check?.diagnostics ?? []).filter((each) => each.node === selected.id)}
          portsOf={portsOf}
          onChange={store.changeGraph}
          onSelect={store.select}
          onCorrect={store.correct}
          onWords={onWords}
          lastRun={lastRun}
          onRename={onRename && ((to) => onRename(selected.id, to))}
          onDuplicate={commands.duplicate}
          onRemove={() => commands.remove([selected.id])}
          onClose={close}
        />
      )}
    </div>
  );
}

type StageProps = Pick<EditorBodyProps, "store" | "view" | "check"> & {
  before: readonly NodeDocument[];
  fixed: FixedSteps;
  types: ReturnType<typeof useNodeTypes>["data"];
  portsOf: ReturnType<typeof portLookup>;
  commands: ReturnType<typeof useEditorCommands>;
  open: (id: string) => void;
};

function Stage(props: StageProps) {
  const { store, view, check, before, fixed, types, portsOf, commands, open } = props;
  const { content, selection, undo, redo } = useStore(store);
  const graph = useDrawnGraph(content.graph);
  const change = useCallback(
    (edit: (graph: GraphDocument) => GraphDocument, kind?: string) =>
      store.changeGraph(edit(store.getState().content.graph), kind),
    [store],
  );
  const colourOf = useMemo(() => socketColours(types), [types]);
  const linkColourOf = useMemo(() => linkColours(graph, types), [graph, types]);
  const marksOf = useMarks(graph, before, check, fixed);
  const [dropped, setDropped] = useState<DroppedWire | null>(null);
  if (view === "json") {
    return (
      <JsonField
        label="The plan as JSON"
        fill
        value={content.graph}
        onChange={(value) => {
          const read = readPlan(value);
          if ("problem" in read) return read.problem;
          store.changeGraph(read.graph, "json");
          return null;
        }}
      />
    );
  }
  return (
    <>
      {graph.nodes.length === 0 && (
        <div className={styles.empty}>
          <p>No steps yet.</p>
          <Button onClick={commands.begin}>Begin with start → agent</Button>
        </div>
      )}
      {view === "canvas" && types && (
        <EditorCanvas
          graph={graph}
          onChange={change}
          selection={selection}
          onSelect={store.select}
          onOpen={open}
          portsOf={portsOf}
          colourOf={colourOf}
          linkColourOf={linkColourOf}
          marksOf={marksOf}
          onDrop={setDropped}
        />
      )}
      {view === "table" && (
        <TableView
          graph={graph}
          diagnostics={check?.diagnostics ?? []}
          fixed={fixed}
          selection={selection}
          onOpen={open}
          onRemove={(id) => commands.remove([id])}
        />
      )}
      <EditorTools
        graph={graph}
        adding={{
          types: types?.node_types ?? [],
          dropped,
          onAdd: (type) => commands.add(type, dropped?.start),
          onClose: () => setDropped(null),
        }}
        canUndo={undo.length > 0}
        canRedo={redo.length > 0}
        onUndo={store.undo}
        onRedo={store.redo}
        onTidyUp={commands.tidyUp}
        onFind={open}
      />
    </>
  );
}

/** The graph as the views draw it: a key in a form is shown there first, and here once there is time. Which steps there
 * are and where they stand is never late: a card that was moved would jump back. */
function useDrawnGraph(graph: GraphDocument): GraphDocument {
  const drawn = useDeferredValue(graph);
  return isLaidOutAlike(drawn, graph) ? drawn : graph;
}

function isLaidOutAlike(a: GraphDocument, b: GraphDocument): boolean {
  if (a === b) return true;
  if (a.edges !== b.edges || a.nodes.length !== b.nodes.length) return false;
  return a.nodes.every(({ id, type, ui }, index) => {
    const other = b.nodes[index];
    return id === other?.id && type === other.type && ui === other.ui;
  });
}

/** The button of a step, in the canvas or the table. */
function stepButton(id: string): HTMLElement | null {
  return document.querySelector(`button[data-step="${CSS.escape(id)}"]`);
}

function useMarks(
  graph: GraphDocument,
  before: readonly NodeDocument[],
  check: CheckResponse | undefined,
  fixed: FixedSteps,
) {
  const old = useMemo(() => new Map(before.map((node) => [node.id, textOf(node)])), [before]);
  return useMemo(() => {
    const now = new Map(graph.nodes.map((node) => [node.id, node]));
    const worst = new Map<string, "error" | "warning">();
    for (const { node, severity } of check?.diagnostics ?? []) {
      if (node && severity !== "info" && worst.get(node) !== "error") worst.set(node, severity);
    }
    const changeOf = (id: string) => {
      const node = now.get(id);
      if (old.size === 0 || (node && old.get(id) === textOf(node))) return null;
      return old.has(id) ? "changed" : "added";
    };
    return (id: string): NodeMarks => ({
      change: changeOf(id),
      problem: worst.get(id) ?? null,
      fixed: fixed.get(id)?.why ?? null,
    });
  }, [graph, old, check, fixed]);
}

const TEXTS = new WeakMap<NodeDocument, string>();

/** Returns what decides whether a node has changed, as text: not where it stands. */
function textOf(node: NodeDocument): string {
  const known = TEXTS.get(node);
  if (known !== undefined) return known;
  const text = writeJson({ ...node, ui: null });
  TEXTS.set(node, text);
  return text;
}
