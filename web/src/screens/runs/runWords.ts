import type { UsageResponse } from "@/api/types";
import { formatClock, formatDuration, formatUsdShort } from "@/ui/format";

/** "$0.0004", "<$0.0001", "$0" where it is known that nothing was paid, "–" where the cost is not known. */
export function costWords({ cost_usd }: Pick<UsageResponse, "cost_usd">): string {
  return cost_usd === null ? "–" : formatUsdShort(cost_usd);
}

/** What a run cost and what its plan did, for the title of a sum: "$0.0013 for the run, $0.0004 for its plan". */
export function costParts(own: UsageResponse, planning: UsageResponse | null): string | undefined {
  if (planning === null) return undefined;
  return `${costWords(own)} for the run, ${costWords(planning)} for its plan, which is paid once`;
}

/** "24.9 s", "1:01"; while the run goes on "0:24", so that the width does not jump. */
export function tookWords(seconds: number, isEnded: boolean): string {
  return isEnded ? formatDuration(seconds) : formatClock(seconds);
}
