import { Link } from "react-router";
import { useResendNotification } from "@/api/mutations";
import { useDeadNotifications, useNotificationTargets } from "@/api/queries";
import type { NotificationResponse, TargetResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { formatInstant } from "@/ui/format";
import { Note } from "@/ui/Note";
import styles from "./TriggersScreen.module.css";

/** The URLs that are notified of runs, and the messages that nobody accepted. */
export function Notifications() {
  const targets = useNotificationTargets();
  const query = useDeadNotifications();
  const dead = query.data?.pages.flatMap((page) => page.notifications) ?? [];
  const error = targets.error ?? query.error;
  return (
    <section className={styles.section} aria-labelledby="notifications">
      <h2 id="notifications">Notifications</h2>
      {error && <ErrorNote error={error} />}
      {targets.data?.targets.length === 0 && (
        <p className={styles.fact}>No URL is notified of runs.</p>
      )}
      {targets.data && targets.data.targets.length > 0 && (
        <ul className={styles.list} aria-label="URLs that are notified">
          {targets.data.targets.map((target) => (
            <Target key={target.target_id} target={target} />
          ))}
        </ul>
      )}
      {dead.length > 0 && (
        <>
          <h3>Nobody accepted</h3>
          <ul className={styles.list} aria-label="Messages that nobody accepted">
            {dead.map((each) => (
              <DeadLetter
                key={each.notification_id}
                letter={each}
                targets={targets.data?.targets}
              />
            ))}
          </ul>
          {query.hasNextPage && (
            <Button onClick={() => void query.fetchNextPage()}>Show more</Button>
          )}
        </>
      )}
    </section>
  );
}

function Target({ target }: { target: TargetResponse }) {
  return (
    <li className={styles.card}>
      <div className={styles.title}>
        <span className={styles.name} title={target.url}>
          {target.url}
        </span>
        <span className={styles.fact}>
          {target.flow ?? "all runs"}: {target.events.join(", ")}
        </span>
      </div>
      {target.problem && <Note kind="warning">It gets nothing: {target.problem}.</Note>}
    </li>
  );
}

function DeadLetter(props: {
  letter: NotificationResponse;
  targets: readonly TargetResponse[] | undefined;
}) {
  const { letter } = props;
  const resend = useResendNotification();
  const url = props.targets?.find((each) => each.target_id === letter.target_id)?.url;
  return (
    <li className={styles.card}>
      <div className={styles.title}>
        <Link to={`/runs/${letter.execution_id}`} className={styles.name}>
          A run {letter.event === "waiting" ? "waits" : letter.event},{" "}
          {formatInstant(new Date(letter.created_at))}
        </Link>
        <span className={styles.fact}>{url ?? letter.target_id}</span>
        <span className={styles.actions}>
          <Button
            small
            aria-label={`Send again to ${url ?? letter.target_id}`}
            disabledReason={resend.isPending ? "Sending …" : undefined}
            onClick={() => resend.mutate(letter.notification_id)}
          >
            Send again
          </Button>
        </span>
      </div>
      <p className={styles.fact}>{letter.error}</p>
      {resend.error && <ErrorNote error={resend.error} />}
    </li>
  );
}
