import type { NodeState } from "@/stream/runState";

/** What every tab of the inspector shows a part of. */
export type PartProps = { executionId: string; node: NodeState };
