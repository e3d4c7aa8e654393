import { useEffect, useRef, useState } from "react";
import { isEnded, isWaiting, titleOf } from "@/api/executionSummary";
import { useWatchedExecutions } from "@/api/queries";
import type { ExecutionSummary } from "@/api/types";

/** Tells by the browser's own notices when a run ends or asks, while nobody sees the page. */
export function BrowserNotices({ open }: { open: (path: string) => unknown }) {
  const before = useRef(new Map<string, string>());
  const [since] = useState(() => new Date().toISOString());
  const { data } = useWatchedExecutions();
  useEffect(() => {
    if (!data) return;
    const known = before.current;
    before.current = new Map(data.executions.map((run) => [run.execution_id, wordsOf(run)]));
    if (!document.hidden || Notification.permission !== "granted") return;
    for (const run of data.executions) {
      const words = wordsOf(run);
      // One that began and ended between two looks is news, one that comes into view again is none.
      const last = known.get(run.execution_id) ?? (run.created_at < since ? words : "");
      if (words === "" || last === words) continue;
      const notice = new Notification(words, { body: titleOf(run), tag: run.execution_id });
      notice.onclick = () => {
        window.focus();
        notice.close();
        open(`/runs/${run.execution_id}`);
      };
    }
  }, [data, open, since]);
  return null;
}

const END_WORDS: Readonly<Record<string, string>> = {
  completed: "A run is done",
  failed: "A run failed",
  cancelled: "A run was cancelled",
};

/** What is to be told of a run as it is now; "" while it goes on. */
function wordsOf(run: ExecutionSummary): string {
  if (isWaiting(run)) return "A run waits for you";
  if (!isEnded(run)) return "";
  if (run.outcome === "partial") return "A run failed in part";
  return END_WORDS[run.status] ?? "A run has ended";
}
