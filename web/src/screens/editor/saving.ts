import { ApiError } from "@/api/http";
import type { EditorStore } from "./editorStore";

/** Whether a change was refused because somebody else was faster. */
export function isConflict(error: unknown): boolean {
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
