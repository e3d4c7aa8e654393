import type { CallStatus } from "@/stream/runState";
import type { StatusName } from "@/ui/Status";

/** The icon of each outcome of a call, and its word. */
export const CALL_LOOKS: Record<CallStatus, { icon: StatusName; word: string }> = {
  waiting: { icon: "waiting", word: "Waits for approval" },
  running: { icon: "running", word: "Running" },
  completed: { icon: "completed", word: "Done" },
  failed: { icon: "failed", word: "Failed" },
  rejected: { icon: "cancelled", word: "Rejected" },
  cancelled: { icon: "cancelled", word: "Cut off" },
};
