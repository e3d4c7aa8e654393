import type { ProviderDetails } from "@/api/types";
import { formatShare } from "@/ui/format";
import { Status } from "@/ui/Status";

/** Returns in a few words why a provider cannot be used; its `reason` says it in full. */
function whyNot({ reason }: ProviderDetails): string {
  if (/_KEY is not set/.test(reason)) return "No key set";
  if (/not downloaded/.test(reason)) return "Not downloaded";
  return "Not available";
}

/** Whether a provider can be used: ready, on its way, or why not. */
export function ProviderState({ provider }: { provider: ProviderDetails }) {
  const { available, download } = provider;
  if (available) return <Status status="completed">Ready</Status>;
  if (!download) return <Status status="failed">{whyNot(provider)}</Status>;
  const share = download.done_bytes / Math.max(1, download.size_bytes);
  return <Status status="running">Getting it, {formatShare(share)}</Status>;
}
