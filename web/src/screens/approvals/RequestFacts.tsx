import { statusesByWave } from "@/api/executionSummary";
import type { ExecutionDigest, GraphDocument, PendingRequest } from "@/api/types";
import { WaveGlyph } from "@/canvas/WaveGlyph";
import { OneTimeLink } from "@/inspector/OneTimeLink";
import { actionLabel, type RequestFields } from "@/inspector/requestFields";
import { ToolAbout } from "@/inspector/ToolAbout";
import styles from "./RequestDetail.module.css";
import { agentOf, nextSteps, standInWords } from "./requestWords";
import { TimeLimit } from "./TimeLimit";

type RequestFactsProps = {
  request: PendingRequest;
  fields: RequestFields;
  digest: ExecutionDigest | undefined;
  graph: GraphDocument | null;
  path: string | null;
  /** Nobody has answered it yet. */
  isOpen: boolean;
};

/** What there is to know beside the question: time, what follows, how far the run is. */
export function RequestFacts(props: RequestFactsProps) {
  const { request, fields, digest, graph, path, isOpen } = props;
  const steps = nextSteps(fields, path, graph);
  return (
    <aside className={styles.facts} aria-label="About this request">
      <TimeLimit request={request} timeoutAction={fields.timeoutAction} />
      {fields.tool && (
        <section>
          <h3>What is called</h3>
          <ToolAbout tool={fields.tool} />
          <p className={styles.asker}>
            The agent <b>{agentOf(request, graph)}</b> asks.
          </p>
        </section>
      )}
      {steps.length > 0 && (
        <section>
          <h3>What happens next</h3>
          <dl className={styles.next}>
            {steps.map(({ action, words }) => (
              <div key={action}>
                <dt>{actionLabel(action)}</dt>
                <dd>{words}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {digest && (
        <section>
          <h3>Where it stands</h3>
          <p className={styles.stand}>
            <WaveGlyph waves={statusesByWave(digest)} />
            <span>{standInWords(digest)}</span>
          </p>
        </section>
      )}
      {isOpen && (
        <section>
          <h3>Somebody else decides</h3>
          <OneTimeLink
            key={request.request_id}
            executionId={request.execution_id}
            requestId={request.request_id}
          />
        </section>
      )}
    </aside>
  );
}
