import { replaceEqualDeep } from "@tanstack/react-query";
import { createStore } from "zustand/vanilla";
import type { GraphDocument, SuggestionResponse } from "@/api/types";
import { merge } from "./merge";
import { applyOperations, operationsBetween, type PlanContent } from "./operations";

/** A plan as the service has it. */
export type SavedPlan = PlanContent & { hash: string; revision: number };

export type EditorState = {
  content: PlanContent;
  /** What the service has; everything that differs from it is not saved yet. */
  saved: SavedPlan;
  undo: readonly PlanContent[];
  redo: readonly PlanContent[];
  /** Ids of the selected nodes and edges. */
  selection: ReadonlySet<string>;
  /** Own changes that no longer fit, because somebody else has removed what they change. */
  lost: readonly string[];
};

/** Steps that can be undone. */
const LONGEST_HISTORY = 100;
/** Changes of the same kind within so many ms are undone together: typing, dragging. */
const SAME_STEP_MS = 800;

export type EditorStore = ReturnType<typeof createEditorStore>;

/** The state of one editor: what is drawn, what is saved, and the way back. */
export function createEditorStore(plan: SavedPlan) {
  const store = createStore<EditorState>(() => ({
    content: contentOf(plan),
    saved: plan,
    undo: [],
    redo: [],
    selection: new Set(),
    lost: [],
  }));
  const { getState, setState } = store;
  let lastKind = "";
  let lastAt = 0;

  /** Changes the content; `kind` names what is typed or dragged, so that it is undone at once. */
  function change(next: PlanContent, kind = ""): void {
    const { content, undo } = getState();
    if (next.graph === content.graph && next.title === content.title) return;
    const isSameStep = kind !== "" && kind === lastKind && Date.now() - lastAt < SAME_STEP_MS;
    lastKind = kind;
    lastAt = Date.now();
    setState({
      content: next,
      undo: isSameStep ? undo : withLast(undo, content),
      redo: [],
    });
  }

  return {
    ...store,
    change,
    changeGraph: (graph: GraphDocument, kind?: string) =>
      change({ ...getState().content, graph }, kind),
    /** Corrects what the check has found. If the plan has changed meanwhile, nothing happens: the
     * check of the plan as it is now comes soon. */
    correct: ({ operations }: SuggestionResponse) => {
      const { content, refused } = applyOperations(getState().content, operations);
      if (refused.length === 0) change(content);
    },
    changeTitle: (title: string) => change({ ...getState().content, title }, "title"),
    select: (ids: Iterable<string>) => setState({ selection: new Set(ids) }),
    undo: () => {
      const { content, undo, redo } = getState();
      const previous = undo.at(-1);
      if (previous)
        setState({ content: previous, undo: undo.slice(0, -1), redo: [...redo, content] });
      lastKind = "";
    },
    redo: () => {
      const { content, undo, redo } = getState();
      const next = redo.at(-1);
      if (next) setState({ content: next, undo: [...undo, content], redo: redo.slice(0, -1) });
      lastKind = "";
    },
    /** The changes that the service does not have. */
    unsaved: () => operationsBetween(getState().saved, getState().content),
    /** The service has `sent` now, as `plan`; what was changed meanwhile stays unsaved. */
    accept: (plan: SavedPlan, sent: PlanContent) => {
      const { content, saved } = getState();
      const later = operationsBetween(sent, content);
      const known = withKnown(plan, content);
      const accepted = applyOperations(contentOf(known), later).content;
      setState({ saved: known, content: withImport(accepted, content, saved) });
    },
    /** Somebody else has changed the plan: own unsaved changes are put on top of theirs. */
    rebase: (plan: SavedPlan) => {
      const { saved, content, lost } = getState();
      const merged = merge(saved, content, contentOf(plan));
      setState({
        saved: plan,
        content: withImport(merged.content, content, saved),
        lost: [...lost, ...merged.lost],
        undo: [],
        redo: [],
      });
    },
    /** A request of this editor has changed the whole plan, all else being saved. */
    replace: (plan: SavedPlan) => {
      const { saved, content, undo } = getState();
      const merged = merge(saved, content, contentOf(plan));
      setState({ saved: plan, ...merged, undo: withLast(undo, content), redo: [] });
    },
    forgetLost: () => setState({ lost: [] }),
  };
}

/** Returns a plan with the nodes and edges that are here already: what is the same is not drawn anew. */
function withKnown(plan: SavedPlan, { graph }: PlanContent): SavedPlan {
  return { ...plan, graph: replaceEqualDeep(graph, plan.graph) };
}

function withLast(history: readonly PlanContent[], content: PlanContent): PlanContent[] {
  return [...history, content].slice(-LONGEST_HISTORY);
}

function contentOf({ title, graph, imported }: SavedPlan): PlanContent {
  return { title, graph, imported };
}

/** Keeps the report of a file that was imported here: the service has that of the first one. */
function withImport(next: PlanContent, mine: PlanContent, saved: PlanContent): PlanContent {
  return mine.imported === saved.imported ? next : { ...next, imported: mine.imported };
}
