import { create } from "zustand";

interface ToastContent {
  text: string;
  kind?: "plain" | "error";
  /** The next step, such as Undo. */
  action?: { label: string; onSelect: () => void };
}

interface Toasts {
  shown: (ToastContent & { id: number })[];
  add: (toast: ToastContent) => void;
  remove: (id: number) => void;
}

let lastId = 0;

/** What is said now. */
export const useToasts = create<Toasts>((set) => ({
  shown: [],
  add: (toast) =>
    set(({ shown }) => {
      lastId += 1;
      return { shown: [...shown.slice(-2), { ...toast, id: lastId }] };
    }),
  remove: (id) => set(({ shown }) => ({ shown: shown.filter((toast) => toast.id !== id) })),
}));

/** Says a sentence at the edge of the page for a few seconds; an error stays until it is closed. */
export function showToast(toast: ToastContent): void {
  useToasts.getState().add(toast);
}
