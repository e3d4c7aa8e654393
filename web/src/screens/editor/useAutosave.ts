import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError, call } from "@/api/http";
import { useEditPlan } from "@/api/mutations";
import type { PlanResponse } from "@/api/types";
import type { EditorStore, SavedPlan } from "./editorStore";
import { operationsBetween, type PlanContent } from "./operations";

/** How long after the last change a plan is saved, in ms. */
const DELAY_MS = 700;
/** How long after a failure it is tried again, in ms. */
const RETRY_MS = 5_000;

export type SaveState = { kind: "saved" } | { kind: "saving" } | { kind: "unsaved"; error: Error };

export type Autosave = {
  state: SaveState;
  /** Saves at once; returns whether the service has every change afterwards. */
  flush: () => Promise<boolean>;
  /** Saves, then changes the plan by another request, such as that of restoring a revision.
   *
   * @throws {Error} Saving or the request failed. */
  changeBy: (request: (hash: string) => Promise<PlanResponse>) => Promise<void>;
};

export function savedPlan(plan: PlanResponse): SavedPlan {
  const { title, nodes, edges, hash, revision } = plan;
  return { title, graph: { nodes, edges }, imported: plan.imported_from?.report, hash, revision };
}

/** Saves what is changed, a moment later. A change by somebody else is merged in, not overwritten.
 *
 * @param plan The plan as it was read last. */
export function useAutosave(plan: PlanResponse, store: EditorStore): Autosave {
  const [state, setState] = useState<SaveState>({ kind: "saved" });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const enqueue = useQueue();
  const saveOnce = useSaveOnce(plan.plan_id, store);

  const saveAll = useCallback(async () => {
    clearTimeout(timer.current);
    try {
      while (store.unsaved().length > 0) {
        setState({ kind: "saving" });
        await saveOnce();
      }
      setState({ kind: "saved" });
      return true;
    } catch (fault) {
      setState({ kind: "unsaved", error: asError(fault) });
      timer.current = setTimeout(() => void enqueue(saveAll), RETRY_MS);
      return false;
    }
  }, [store, saveOnce, enqueue]);
  const flush = useCallback(() => enqueue(saveAll), [enqueue, saveAll]);

  const changeBy = (request: (hash: string) => Promise<PlanResponse>) =>
    enqueue(async () => {
      if (!(await saveAll())) throw new Error("Your last changes are not saved yet.");
      store.replace(savedPlan(await request(store.getState().saved.hash)));
    });

  useEffect(() => {
    const unsubscribe = store.subscribe((next, before) => {
      if (next.content === before.content) return;
      const isSaved = store.unsaved().length === 0;
      setState((now) => (now.kind === "unsaved" ? now : { kind: isSaved ? "saved" : "saving" }));
      if (isSaved) return;
      clearTimeout(timer.current);
      timer.current = setTimeout(() => void flush(), DELAY_MS);
    });
    return () => {
      unsubscribe();
      void flush();
    };
  }, [store, flush]);
  useEffect(() => {
    void enqueue(async () => {
      if (plan.revision > store.getState().saved.revision) store.rebase(savedPlan(plan));
    });
  }, [plan, store, enqueue]);
  useEffect(() => guardUnsaved(store, () => void flush()), [store, flush]);
  return { state, flush, changeBy };
}

/** One request at a time: each is based on the hash that the one before has left. */
function useQueue() {
  const last = useRef<Promise<unknown>>(Promise.resolve());
  return useCallback(<Result>(task: () => Promise<Result>): Promise<Result> => {
    const result = last.current.then(task);
    last.current = result.catch(() => undefined);
    return result;
  }, []);
}

/** Sends the changes there are; where somebody else was faster, theirs are read first. */
function useSaveOnce(planId: string, store: EditorStore) {
  const { mutateAsync } = useEditPlan(planId);
  // What was sent without an answer: the service may have it.
  const unanswered = useRef<PlanContent | null>(null);
  return useCallback(async () => {
    const { content, saved } = store.getState();
    const body = { operations: store.unsaved(), author: "person" } as const;
    try {
      store.accept(savedPlan(await mutateAsync({ hash: saved.hash, body })), content);
      unanswered.current = null;
    } catch (error) {
      if (!isConflict(error)) {
        if (error instanceof ApiError && error.status === 0) unanswered.current ??= content;
        throw error;
      }
      const plan = savedPlan(await call("getPlan", { path: { plan_id: planId } }));
      const sent = unanswered.current;
      unanswered.current = null;
      if (sent && operationsBetween(sent, plan).length === 0) store.accept(plan, sent);
      else store.rebase(plan);
    }
  }, [planId, mutateAsync, store]);
}

function asError(fault: unknown): Error {
  return fault instanceof Error ? fault : new Error(String(fault));
}

/** Whether a change was refused because somebody else was faster. */
function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 412;
}

/** Lets the browser ask before it closes a page with changes that are not saved.
 *
 * @param save Is called then, and when the page is hidden: it may succeed in time.
 * @returns A function that ends it. */
export function guardUnsaved(store: EditorStore, save?: () => void): () => void {
  const leave = (event: Event) => {
    if (store.unsaved().length === 0) return;
    save?.();
    if (event.type === "beforeunload") event.preventDefault();
  };
  const hide = (event: Event) => document.hidden && leave(event);
  window.addEventListener("beforeunload", leave);
  document.addEventListener("visibilitychange", hide);
  return () => {
    window.removeEventListener("beforeunload", leave);
    document.removeEventListener("visibilitychange", hide);
  };
}
