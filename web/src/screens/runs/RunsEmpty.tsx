import { Button, ButtonLink } from "@/ui/Button";
import { EmptyState } from "@/ui/EmptyState";
import { formatAmount } from "@/ui/format";

/** What the list says without runs, and without runs that fit its filter. */
export function RunsEmpty(props: { isFiltered: boolean; others: number; onClear: () => void }) {
  if (props.isFiltered) {
    return (
      <EmptyState
        title="No run fits."
        action={<Button onClick={props.onClear}>Clear filter</Button>}
      >
        {props.others > 0
          ? `${formatAmount(props.others, "run")} of another status ${props.others === 1 ? "fits" : "fit"}.`
          : "The filter hides all that are kept."}
      </EmptyState>
    );
  }
  return (
    <EmptyState
      title="No runs yet."
      action={
        <ButtonLink kind="primary" icon="add" to="/">
          New goal
        </ButtonLink>
      }
    >
      A run is one go at a goal. Say a goal, look at the plan, press Run.
    </EmptyState>
  );
}
