import { useRef, useState } from "react";
import { Link, useNavigate } from "react-router";
import { errorText } from "@/api/errorText";
import { useCreateFlow } from "@/api/mutations";
import { useFlows } from "@/api/queries";
import type { FlowSummary } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button, ButtonLink } from "@/ui/Button";
import { EmptyState } from "@/ui/EmptyState";
import { formatAmount, formatMoment } from "@/ui/format";
import { IconButton } from "@/ui/IconButton";
import { Icon } from "@/ui/icons";
import { usePageTitle } from "@/ui/pageTitle";
import { Skeleton } from "@/ui/Skeleton";
import { Tag } from "@/ui/Tag";
import { showToast } from "@/ui/Toast";
import { DeleteFlow } from "./DeleteFlow";
import { draftWords } from "./draftWords";
import styles from "./FlowsScreen.module.css";
import { readFlowFile } from "./flowInputs";
import { NewFlow } from "./NewFlow";

/** The flows that are kept: look at one, run it, change it. */
export function FlowsScreen() {
  const query = useFlows();
  const flows = query.data?.pages.flatMap((page) => page.flows) ?? [];
  const [isMaking, setMaking] = useState(false);
  const [leaving, setLeaving] = useState<FlowSummary | null>(null);
  usePageTitle("Flows");
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <h1>Flows</h1>
        <ButtonLink kind="quiet" icon="clock" to="/triggers">
          Triggers
        </ButtonLink>
        <ImportButton />
        {flows.length > 0 && (
          <Button kind="primary" icon="add" onClick={() => setMaking(true)}>
            New flow
          </Button>
        )}
      </header>
      {query.isPending && <Skeleton label="Loading the flows" lines={4} />}
      {query.error && <ErrorNote error={query.error} />}
      {query.data && flows.length === 0 && (
        <EmptyState
          sign={<Icon name="flow" />}
          title="No flows yet."
          action={
            <Button kind="primary" onClick={() => setMaking(true)}>
              Save a plan as a flow
            </Button>
          }
        >
          A flow is a plan under a name, to be run again with other inputs.
        </EmptyState>
      )}
      {flows.length > 0 && (
        <ul className={styles.list} aria-label="Flows">
          {flows.map((flow) => (
            <FlowRow key={flow.plan_id} flow={flow} onDelete={() => setLeaving(flow)} />
          ))}
        </ul>
      )}
      {query.hasNextPage && <Button onClick={() => void query.fetchNextPage()}>Show more</Button>}
      {isMaking && <NewFlow onClose={() => setMaking(false)} />}
      {leaving && (
        <DeleteFlow
          flow={leaving}
          onClose={() => setLeaving(null)}
          onDeleted={() => setLeaving(null)}
        />
      )}
    </div>
  );
}

function FlowRow({ flow, onDelete }: { flow: FlowSummary; onDelete: () => void }) {
  const to = `/flows/${flow.plan_id}`;
  return (
    <li className={styles.row}>
      <Link to={to} className={styles.name} title={flow.name}>
        {flow.name}
      </Link>
      <span className={styles.purpose} title={flow.description}>
        {flow.draft && <Tag>{draftWords(flow.draft)}</Tag>} {flow.description}
      </span>
      <span className={styles.fact}>{formatAmount(flow.node_count, "step")}</span>
      <span className={styles.fact}>revision {flow.revision}</span>
      <span className={styles.fact}>{formatMoment(new Date(flow.updated_at))}</span>
      <span className={styles.actions}>
        <ButtonLink small icon="play" to={to} aria-label={`Run ${flow.name}`}>
          Run
        </ButtonLink>
        <ButtonLink small kind="quiet" to={`${to}/edit`} aria-label={`Edit ${flow.name}`}>
          Edit
        </ButtonLink>
        <IconButton small icon="trash" label={`Delete ${flow.name}`} onClick={onDelete} />
      </span>
    </li>
  );
}

function ImportButton() {
  const field = useRef<HTMLInputElement>(null);
  const create = useCreateFlow();
  const navigate = useNavigate();
  const read = async (file: File) => {
    try {
      const flow = await create.mutateAsync(readFlowFile(await file.text(), file.name));
      navigate(`/flows/${flow.plan_id}`);
    } catch (error) {
      showToast({ kind: "error", text: `${file.name} was not imported. ${errorText(error)}` });
    }
  };
  return (
    <>
      <input
        ref={field}
        type="file"
        accept=".json,application/json"
        aria-label="File to import"
        hidden
        onChange={(event) => {
          const [file] = event.target.files ?? [];
          event.target.value = "";
          if (file) void read(file);
        }}
      />
      <Button onClick={() => field.current?.click()}>Import a file</Button>
    </>
  );
}
