import { useState } from "react";
import { usePlans } from "@/api/queries";
import type { ExecutionCounts } from "@/api/types";
import styles from "@/screens/runs/RunFilterFields.module.css";
import {
  type RunFilters,
  STATUS_FILTERS,
  type StatusFilter,
  TIME_FILTERS,
  type TimeFilter,
} from "@/screens/runs/runFilters";
import { Chip } from "@/ui/Chip";
import { TextField } from "@/ui/Field";
import { Menu } from "@/ui/Menu";
import { SettledSearchField } from "@/ui/SearchField";
import { Segmented } from "@/ui/Segmented";
import { StatusIcon } from "@/ui/Status";

const STATUS_WORDS: Record<StatusFilter, string> = {
  all: "All",
  running: "Running",
  waiting: "Waiting for you",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
};
const TIME_WORDS: Record<TimeFilter, string> = {
  all: "Any time",
  today: "Today",
  week: "Last 7 days",
  range: "From … to",
};
interface RunFilterFieldsProps {
  filters: RunFilters;
  /** How many runs there are of each status; undefined while it is not known. */
  counts: ExecutionCounts | undefined;
  onChange: (changed: Partial<RunFilters>) => void;
}

/** What narrows the list of runs: status, time, text. */
export function RunFilterFields({ filters, counts, onChange }: RunFilterFieldsProps) {
  const known = useLastKnown(counts);
  return (
    <>
      <Segmented
        label="Status"
        value={filters.status}
        options={STATUS_FILTERS.map((value) => ({
          value,
          label: STATUS_WORDS[value],
          ...(value !== "all" && {
            sign: <StatusIcon status={value} />,
            count: known && !known.at_least ? countOf(value, known) : undefined,
          }),
        }))}
        onChange={(status) => onChange({ status })}
      />
      <Menu
        align="start"
        trigger={
          <Chip icon="clock" opens>
            {TIME_WORDS[filters.time]}
          </Chip>
        }
        items={TIME_FILTERS.map((time) => ({
          label: TIME_WORDS[time],
          checked: time === filters.time,
          onSelect: () => onChange({ time }),
        }))}
      />
      {filters.time === "range" && <Days filters={filters} onChange={onChange} />}
      <FlowMenu value={filters.flow} onChange={(flow) => onChange({ flow })} />
      <Chip
        icon={filters.starred ? "starred" : "star"}
        aria-pressed={filters.starred !== ""}
        onClick={() => onChange({ starred: filters.starred ? "" : "yes" })}
      >
        Starred
      </Chip>
      {filters.tag && (
        <Chip icon="close" onClick={() => onChange({ tag: "" })}>
          Tag: {filters.tag}
        </Chip>
      )}
      <SettledSearchField
        label="Words, name, tag or id"
        value={filters.text}
        onChange={(text) => onChange({ text })}
      />
    </>
  );
}

/** The first and the last day, both included. */
function Days({ filters, onChange }: Pick<RunFilterFieldsProps, "filters" | "onChange">) {
  return (
    <span className={styles.days}>
      <TextField
        label="From"
        hiddenLabel
        type="date"
        max={filters.to || undefined}
        value={filters.from}
        onChange={(event) => onChange({ from: event.target.value })}
      />
      <span>to</span>
      <TextField
        label="To"
        hiddenLabel
        type="date"
        min={filters.from || undefined}
        value={filters.to}
        onChange={(event) => onChange({ to: event.target.value })}
      />
    </span>
  );
}

/** Chooses a flow; nothing where there are none. */
function FlowMenu(props: { value: string; onChange: (flow: string) => void }) {
  const plans = usePlans({ named: true, limit: 50 }).data?.pages[0]?.plans ?? [];
  if (plans.length === 0 && !props.value) return null;
  const chosen = plans.find((plan) => plan.plan_id === props.value);
  return (
    <Menu
      align="start"
      trigger={
        <Chip icon="flow" opens>
          {chosen?.name ?? (props.value ? "One plan" : "Any flow")}
        </Chip>
      }
      items={[
        { label: "Any flow", checked: !props.value, onSelect: () => props.onChange("") },
        ...plans.map((plan) => ({
          label: plan.name ?? plan.title,
          checked: plan.plan_id === props.value,
          onSelect: () => props.onChange(plan.plan_id),
        })),
      ]}
    />
  );
}

function countOf(status: Exclude<StatusFilter, "all">, counts: ExecutionCounts): number {
  return (status === "running" ? counts.executing : counts[status]) ?? 0;
}

/** The counts of before are shown while those of another filter come: nothing jumps. */
function useLastKnown(counts: ExecutionCounts | undefined): ExecutionCounts | undefined {
  const [known, setKnown] = useState(counts);
  if (counts && counts !== known) setKnown(counts);
  return counts ?? known;
}
