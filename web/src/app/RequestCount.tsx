import { useRequests } from "@/api/queries";
import { Count } from "@/ui/Count";
import { useTitleCount } from "@/ui/pageTitle";

/** How many questions wait for a person, in all runs. */
export function RequestCount() {
  const total = useRequests().data?.pages[0]?.total ?? 0;
  useTitleCount(total);
  return total > 0 ? <Count value={total} label={`${total} waiting for you`} /> : null;
}
