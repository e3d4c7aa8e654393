import type { UsageResponse } from "@/api/types";
import { formatClock, formatDuration, formatUsdShort } from "@/ui/format";

/** "$0.0004", "<$0.0001", "$0" where nothing was paid, "unknown" where a model has no price. */
export function costWords({ calls, cost_usd }: UsageResponse): string {
  if (cost_usd === null) return calls === 0 ? "$0" : "unknown";
  return formatUsdShort(cost_usd);
}

/** "24.9 s", "1:01"; while the run goes on "0:24", so that the width does not jump. */
export function tookWords(seconds: number, isEnded: boolean): string {
  return isEnded ? formatDuration(seconds) : formatClock(seconds);
}
