import { formatAmount } from "@/ui/format";
import { showToast } from "@/ui/toasts";

/** Copies a text and says so; a page that is not loaded over TLS or from this machine may not copy. */
export async function copyText(text: string, name = formatAmount(text.length, "character")) {
  try {
    await navigator.clipboard.writeText(text);
    showToast({ text: `Copied ${name}` });
  } catch {
    showToast({ kind: "error", text: "This browser does not let the page copy.." });
  }
}
