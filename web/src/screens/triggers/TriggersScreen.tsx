import { useState } from "react";
import { useTriggers } from "@/api/queries";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { EmptyState } from "@/ui/EmptyState";
import { Icon } from "@/ui/icons";
import { usePageTitle } from "@/ui/pageTitle";
import { Skeleton } from "@/ui/Skeleton";
import { AddTrigger } from "./AddTrigger";
import { Notifications } from "./Notifications";
import { TriggerCard } from "./TriggerCard";
import styles from "./TriggersScreen.module.css";

/** What starts flows without a person, what came last, and what nobody accepted. */
export function TriggersScreen() {
  const query = useTriggers();
  const triggers = query.data?.pages.flatMap((page) => page.triggers) ?? [];
  const [isAdding, setAdding] = useState(false);
  usePageTitle("Triggers");
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <h1>Triggers</h1>
        {triggers.length > 0 && (
          <Button kind="primary" icon="add" onClick={() => setAdding(true)}>
            Listen for a flow
          </Button>
        )}
      </header>
      {query.isPending && <Skeleton label="Loading the triggers" lines={4} />}
      {query.error && <ErrorNote error={query.error} />}
      {query.data && triggers.length === 0 && (
        <EmptyState
          sign={<Icon name="clock" />}
          title="No triggers yet."
          action={
            <Button kind="primary" onClick={() => setAdding(true)}>
              Listen for a flow
            </Button>
          }
        >
          A webhook, a schedule or a stream starts the flow that begins with it.
        </EmptyState>
      )}
      {triggers.length > 0 && (
        <ul className={styles.list} aria-label="Triggers">
          {triggers.map((trigger) => (
            <TriggerCard key={trigger.trigger_id} trigger={trigger} />
          ))}
        </ul>
      )}
      {query.hasNextPage && <Button onClick={() => void query.fetchNextPage()}>Show more</Button>}
      <Notifications />
      {isAdding && <AddTrigger onClose={() => setAdding(false)} />}
    </div>
  );
}
