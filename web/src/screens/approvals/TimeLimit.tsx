import type { CSSProperties } from "react";
import type { PendingRequest } from "@/api/types";
import { useNow } from "@/ui/useNow";
import { timeLeft, timeoutWords } from "./requestWords";
import styles from "./TimeLimit.module.css";

type TimeLimitProps = {
  request: Pick<PendingRequest, "deadline" | "since">;
  timeoutAction: string | null;
};

/** How long an answer is waited for, and what happens then. */
export function TimeLimit({ request, timeoutAction }: TimeLimitProps) {
  const { words, share } = timeLeft(request, useNow(request.deadline !== null));
  return (
    <section className={styles.limit} aria-label="Time limit">
      <p className={styles.left} data-limited={share !== null}>
        {share !== null && (
          <span
            className={styles.ring}
            style={{ "--share": `${share}turn` } as CSSProperties}
            aria-hidden="true"
          />
        )}
        <b>{share === null ? "No time limit" : words}</b>
      </p>
      <p className={styles.words}>{timeoutWords(request, timeoutAction)}</p>
    </section>
  );
}
