import { showToast } from "@/ui/toasts";
import { errorText } from "./errorText";

/** Tells the reader of a request that has failed. */
export function showError(error: unknown): void {
  showToast({ kind: "error", text: errorText(error) });
}
