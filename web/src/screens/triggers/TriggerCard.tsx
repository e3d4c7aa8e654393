import { useState } from "react";
import { Link } from "react-router";
import { useSwitchTrigger } from "@/api/mutations";
import type { TriggerResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { formatAmount, formatInstant } from "@/ui/format";
import { IconButton } from "@/ui/IconButton";
import { Note } from "@/ui/Note";
import { Switch } from "@/ui/Switch";
import { Tag } from "@/ui/Tag";
import { DeleteTrigger } from "./DeleteTrigger";
import { Deliveries } from "./Deliveries";
import { FireTrigger } from "./FireTrigger";
import styles from "./TriggersScreen.module.css";

/** One trigger: what it listens for, whether it can, and what came last. */
export function TriggerCard({ trigger }: { trigger: TriggerResponse }) {
  const [open, setOpen] = useState<"fire" | "delete" | null>(null);
  const change = useSwitchTrigger();
  const name = `the ${trigger.kind} of ${trigger.flow}`;
  return (
    <li className={styles.card}>
      <div className={styles.title}>
        <Link to={`/flows/${trigger.plan_id}`} className={styles.name} title={trigger.flow}>
          {trigger.flow}
        </Link>
        <Tag>{trigger.kind}</Tag>
        <span className={styles.fact}>step {trigger.node_id}</span>
        <span className={styles.actions}>
          <Switch
            label="Enabled"
            checked={trigger.enabled}
            onChange={(enabled) => change.mutate({ triggerId: trigger.trigger_id, enabled })}
          />
          <Button
            small
            icon="play"
            aria-label={`Send a test delivery to ${name}`}
            onClick={() => setOpen("fire")}
          >
            Test
          </Button>
          <IconButton
            small
            icon="trash"
            label={`Delete ${name}`}
            onClick={() => setOpen("delete")}
          />
        </span>
      </div>
      {trigger.problem && <Note kind="warning">It starts nothing: {trigger.problem}.</Note>}
      {change.error && <ErrorNote error={change.error} />}
      <Details details={trigger.details} />
      <details className={styles.deliveries}>
        <summary>{formatAmount(trigger.deliveries.length, "delivery", "deliveries")}</summary>
        <Deliveries of={name} deliveries={trigger.deliveries} />
      </details>
      {open === "fire" && <FireTrigger trigger={trigger} onClose={() => setOpen(null)} />}
      {open === "delete" && <DeleteTrigger trigger={trigger} onClose={() => setOpen(null)} />}
    </li>
  );
}

/** What only its kind has: the path of a webhook, the next times of a schedule. */
function Details({ details }: { details: TriggerResponse["details"] }) {
  const facts = Object.entries(details);
  if (facts.length === 0) return null;
  return (
    <dl className={styles.details}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name === "next" ? "Next times" : name}</dt>
          <dd>{name === "next" ? times(value) : String(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function times(value: unknown): string {
  const found = Array.isArray(value) ? value : [];
  return found.map((time) => formatInstant(new Date(String(time)))).join(" · ");
}
