import { useState } from "react";
import type { ExecutionCounts } from "@/api/types";
import {
  type RunFilters,
  STATUS_FILTERS,
  type StatusFilter,
  TIME_FILTERS,
  type TimeFilter,
} from "@/screens/runs/runFilters";
import { Chip } from "@/ui/Chip";
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
            count: known && countOf(value, known),
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
      <SettledSearchField
        label="Goal or title"
        value={filters.text}
        onChange={(text) => onChange({ text })}
      />
    </>
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
