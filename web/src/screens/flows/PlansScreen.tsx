import { useState } from "react";
import { useSearchParams } from "react-router";
import { usePlans } from "@/api/queries";
import type { PlanSummary } from "@/api/types";
import { SaveAsFlow } from "@/screens/editor/SaveAsFlow";
import { ListPage } from "@/screens/ListPage";
import { Button, ButtonLink } from "@/ui/Button";
import { EmptyState } from "@/ui/EmptyState";
import { Icon } from "@/ui/icons";
import { usePageTitle } from "@/ui/pageTitle";
import { SettledSearchField } from "@/ui/SearchField";
import { Segmented } from "@/ui/Segmented";
import { useShortcuts } from "@/ui/shortcuts";
import { useRowFocus } from "@/ui/useRowFocus";
import { DeletePlan } from "./DeletePlan";
import { ImportFlow } from "./ImportFlow";
import { NewFlow } from "./NewFlow";
import { PlanTable } from "./PlanTable";
import {
  apiFilters,
  type ListedFilters,
  NAMED_FILTERS,
  readFilters,
  withFilters,
} from "./planFilters";
import { nameOf } from "./planWords";

const NAMED_WORDS = { true: "Named", false: "Without a name", all: "All" } as const;

/** The graphs that are stored, at first those with a name: look at one, run it, change it, name it. */
export function PlansScreen() {
  const [params, setParams] = useSearchParams();
  const filters = readFilters(params);
  const change = (changed: Partial<ListedFilters>) =>
    setParams((now) => withFilters(now, changed), { replace: true });
  const query = usePlans(apiFilters(filters), { isLive: true });
  const plans = query.data?.pages.flatMap((page) => page.plans) ?? [];
  const [isMaking, setMaking] = useState(false);
  const [isImporting, setImporting] = useState(false);
  const [naming, setNaming] = useState<PlanSummary | null>(null);
  const [leaving, setLeaving] = useState<PlanSummary | null>(null);
  const { move, rememberLink } = useRowFocus(plans.map((plan) => plan.plan_id));
  useShortcuts("Flows", [
    { keys: "j", does: "Next flow or plan", run: () => move(1) },
    { keys: "k", does: "Previous flow or plan", run: () => move(-1) },
  ]);
  const title = filters.named === "true" ? "Flows" : "Plans";
  usePageTitle(title);
  const close = () => setLeaving(null);
  return (
    <ListPage
      title={title}
      actions={
        <ListActions
          onMake={plans.length > 0 ? () => setMaking(true) : undefined}
          onImport={() => setImporting(true)}
        />
      }
      filters={<PlanFilterFields filters={filters} onChange={change} />}
      query={query}
      empty={<PlansEmpty filters={filters} onChange={change} onMake={() => setMaking(true)} />}
      dock={
        <>
          {isMaking && <NewFlow onClose={() => setMaking(false)} />}
          {isImporting && <ImportFlow onClose={() => setImporting(false)} />}
          {naming && (
            <SaveAsFlow
              planId={naming.plan_id}
              title={nameOf(naming)}
              onClose={() => setNaming(null)}
            />
          )}
          {leaving && (
            <DeletePlan plan={leaving} title={nameOf(leaving)} onClose={close} onDeleted={close} />
          )}
        </>
      }
    >
      {plans.length > 0 && (
        <PlanTable
          label={title}
          plans={plans}
          onName={setNaming}
          onDelete={setLeaving}
          rememberLink={rememberLink}
        />
      )}
    </ListPage>
  );
}

type ListActionsProps = { onMake: (() => void) | undefined; onImport: () => void };

function ListActions({ onMake, onImport }: ListActionsProps) {
  return (
    <>
      <ButtonLink kind="quiet" icon="clock" to="/triggers">
        Triggers
      </ButtonLink>
      <Button onClick={onImport}>Import a file</Button>
      {onMake && (
        <Button kind="primary" icon="add" onClick={onMake}>
          New flow
        </Button>
      )}
    </>
  );
}

type PlanFilterFieldsProps = {
  filters: ListedFilters;
  onChange: (changed: Partial<ListedFilters>) => void;
};

function PlanFilterFields({ filters, onChange }: PlanFilterFieldsProps) {
  return (
    <>
      <Segmented
        label="Listed"
        value={filters.named}
        options={NAMED_FILTERS.map((value) => ({ value, label: NAMED_WORDS[value] }))}
        onChange={(named) => onChange({ named })}
      />
      <SettledSearchField
        label="Name, title, purpose or goal"
        value={filters.text}
        onChange={(text) => onChange({ text })}
      />
    </>
  );
}

function PlansEmpty(props: PlanFilterFieldsProps & { onMake: () => void }) {
  const { named, text } = props.filters;
  if (text) {
    const isWidest = named === "all";
    return (
      <EmptyState
        title={named === "true" ? "No flow fits." : "No plan fits."}
        action={
          <Button onClick={() => props.onChange(isWidest ? { text: "" } : { named: "all" })}>
            {isWidest ? "Clear filter" : "Search all plans"}
          </Button>
        }
      >
        {`Nothing here has “${text}” in its name, title, purpose or goal.`}
      </EmptyState>
    );
  }
  if (named === "true") {
    return (
      <EmptyState
        sign={<Icon name="flow" />}
        title="No flows yet."
        action={
          <Button kind="primary" onClick={props.onMake}>
            Save a plan as a flow
          </Button>
        }
      >
        A flow is a plan under a name, to be run again with other inputs.
      </EmptyState>
    );
  }
  return (
    <EmptyState
      title={named === "all" ? "No plans yet." : "No plans without a name."}
      action={
        <ButtonLink kind="primary" icon="add" to="/">
          New goal
        </ButtonLink>
      }
    >
      A plan is made for a goal, and is run once or often.
    </EmptyState>
  );
}
