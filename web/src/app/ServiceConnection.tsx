import { useServiceState } from "@/app/serviceState";
import { Connection } from "@/ui/Connection";
import { formatTime } from "@/ui/format";

const FAILURES_UNTIL_LOST = 3;

/** Whether the service can be reached; the notice below the bar shows why it refuses work. */
export function ServiceConnection() {
  const { isReached, failures, lastAnswer } = useServiceState();
  if (isReached) return <Connection state="live" />;
  return (
    <Connection
      state={failures < FAILURES_UNTIL_LOST ? "reconnecting" : "lost"}
      {...(lastAnswer && { asOf: `as of ${formatTime(lastAnswer, true)}` })}
    />
  );
}
