import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { call, newKey } from "@/api/http";
import { queryKeys } from "@/api/queryKeys";
import type { Operations, PlanResponse } from "@/api/types";

type Body<Name extends keyof Operations> = Operations[Name]["body"];

/** Have everything read again that shows an execution, after it has changed. */
async function executionChanged(client: QueryClient, executionId: string): Promise<void> {
  await Promise.all([
    client.invalidateQueries({ queryKey: queryKeys.allExecutions }),
    client.invalidateQueries({ queryKey: queryKeys.execution(executionId) }),
    client.invalidateQueries({ queryKey: queryKeys.requests }),
    // Its plan has the status of its newest execution.
    client.invalidateQueries({ queryKey: queryKeys.allPlans }),
  ]);
}

async function flowChanged(client: QueryClient, flowId: string): Promise<void> {
  await Promise.all([
    client.invalidateQueries({ queryKey: queryKeys.allPlans }),
    client.invalidateQueries({ queryKey: queryKeys.flow(flowId) }),
    client.invalidateQueries({ queryKey: queryKeys.plan(flowId) }),
  ]);
}

// -- plans ------------------------------------------------------------------------------------------

async function planChanged(client: QueryClient, plan: PlanResponse): Promise<void> {
  client.setQueryData(queryKeys.plan(plan.plan_id), plan);
  await Promise.all([
    client.invalidateQueries({ queryKey: queryKeys.allPlans }),
    client.invalidateQueries({ queryKey: queryKeys.revisions(plan.plan_id) }),
    client.invalidateQueries({ queryKey: queryKeys.flow(plan.plan_id) }),
  ]);
}

/** Delete a plan, with a name or without; with `force` also what leads to its name. */
export function useDeletePlan() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ planId, force }: { planId: string; force?: boolean }) =>
      call("deletePlan", { path: { plan_id: planId }, query: { force } }),
    onSuccess: (_, { planId }) => {
      client.removeQueries({ queryKey: queryKeys.plan(planId) });
      client.removeQueries({ queryKey: queryKeys.flow(planId) });
      return client.invalidateQueries({ queryKey: queryKeys.allPlans });
    },
  });
}

/** Change a plan that still has the hash; otherwise the error has the code `plan-changed`. */
export function useEditPlan(planId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ hash, body }: { hash: string; body: Body<"editPlan"> }) =>
      call("editPlan", { path: { plan_id: planId }, body, ifMatch: hash, outlivesPage: true }),
    onSuccess: (plan) => planChanged(client, plan),
  });
}

/** Give a plan the content of an earlier revision, as a new one. */
export function useRestoreRevision(planId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ hash, revision }: { hash: string; revision: number }) =>
      call("restoreRevision", {
        path: { plan_id: planId, revision },
        body: { author: "person" },
        ifMatch: hash,
        key: newKey(),
      }),
    onSuccess: (plan) => planChanged(client, plan),
  });
}

/** Have a model write a change of a plan, or take the change that it wrote of the plan with a hash. */
export function useRefinePlan(planId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ hash, body }: { hash?: string; body: Body<"refinePlan"> }) =>
      call("refinePlan", { path: { plan_id: planId }, body, ifMatch: hash, key: newKey() }),
    onSuccess: (plan) => planChanged(client, plan),
  });
}

/** Make what ran the newest revision of its plan, which still has this hash. */
export function usePromote(executionId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ hash }: { hash: string }) =>
      call("promoteExecution", {
        path: { execution_id: executionId },
        body: { author: "person" },
        ifMatch: hash,
        key: newKey(),
      }),
    onSuccess: (plan) => planChanged(client, plan),
  });
}

/** Approve a revision of a flow for all who call it; the approval is of its hash. */
export function useApproveRevision(planId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ hash, revision }: { hash: string; revision: number }) =>
      call("approveRevision", { path: { plan_id: planId, revision }, ifMatch: hash }),
    onSuccess: (plan) => planChanged(client, plan),
  });
}

// -- executions -------------------------------------------------------------------------------------

/** Make an execution of a plan, a flow or a graph, and start it with `start`. */
export function useExecute() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Body<"createExecution">) => call("createExecution", { body, key: newKey() }),
    onSuccess: (execution) => executionChanged(client, execution.execution_id),
  });
}

/** Cancel an execution, or one node of it. */
export function useCancel(executionId: string) {
  return useCommand(executionId, (body: Body<"cancelExecution">) =>
    call("cancelExecution", { path: { execution_id: executionId }, body, key: newKey() }),
  );
}

export function usePause(executionId: string) {
  return useCommand(executionId, () =>
    call("pauseExecution", { path: { execution_id: executionId }, key: newKey() }),
  );
}

export function useResume(executionId: string) {
  return useCommand(executionId, () =>
    call("resumeExecution", { path: { execution_id: executionId }, key: newKey() }),
  );
}

/** Run failed steps again, as a new execution. */
export function useRetry(executionId: string) {
  return useCommand(executionId, (body: Body<"retryExecution">) =>
    call("retryExecution", { path: { execution_id: executionId }, body, key: newKey() }),
  );
}

/** Change the graph of an execution that runs or waits and still has the hash. */
export function useRevise(executionId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ hash, body }: { hash: string; body: Body<"reviseExecution"> }) =>
      call("reviseExecution", {
        path: { execution_id: executionId },
        body,
        ...(hash !== "" && { ifMatch: hash }),
        key: newKey(),
      }),
    onSuccess: () => executionChanged(client, executionId),
  });
}

/** Have a model change the graph of an execution that runs or waits and still has the hash. */
export function useReplanRun(executionId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ hash, request }: { hash: string; request: string }) =>
      call("replanExecution", {
        path: { execution_id: executionId },
        body: { request },
        ...(hash !== "" && { ifMatch: hash }),
        key: newKey(),
      }),
    onSuccess: () => executionChanged(client, executionId),
  });
}

/** Make a changed execution out of one that has ended or is paused. */
export function useFork(executionId: string) {
  return useCommand(executionId, (body: Body<"forkExecution">) =>
    call("forkExecution", { path: { execution_id: executionId }, body, key: newKey() }),
  );
}

export function useDeleteExecution() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (executionId: string) =>
      call("deleteExecution", { path: { execution_id: executionId } }),
    onSuccess: (_, executionId) => {
      client.removeQueries({ queryKey: queryKeys.execution(executionId) });
      return client.invalidateQueries({ queryKey: queryKeys.allExecutions });
    },
  });
}

/** Name, tag, note or star an execution. */
export function useLabel() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ executionId, labels }: { executionId: string; labels: Labels }) =>
      call("labelExecution", { path: { execution_id: executionId }, body: labels }),
    onSuccess: (_, { executionId }) => executionChanged(client, executionId),
  });
}

export type Labels = Body<"labelExecution">;

/** What became of each execution of several: the error of those that it could not be done with. */
export type BulkFailure = { executionId: string; error: unknown };

/** Cancel or delete several executions, one after the other; those that fail are told. */
export function useBulk(what: "cancel" | "delete") {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (executionIds: readonly string[]) => {
      const failures: BulkFailure[] = [];
      for (const executionId of executionIds) {
        const path = { execution_id: executionId };
        try {
          if (what === "delete") await call("deleteExecution", { path });
          else await call("cancelExecution", { path, body: {}, key: newKey() });
        } catch (error) {
          failures.push({ executionId, error });
        }
      }
      return failures;
    },
    onSettled: () => client.invalidateQueries({ queryKey: queryKeys.allExecutions }),
  });
}

export type Answer = { executionId: string; requestId: string; answer: Body<"answerRequest"> };

/** Answer a request of an execution. */
export function useAnswer() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ executionId, requestId, answer }: Answer) =>
      call("answerRequest", {
        path: { execution_id: executionId, request_id: requestId },
        body: answer,
        key: newKey(),
      }),
    onSuccess: async (_answer, { executionId, requestId }) => {
      // Loaded where there is a draft; the first screen has none.
      const { draftKey, dropDraft } = await import("@/inspector/answerDraft");
      dropDraft(draftKey(executionId, requestId));
    },
    onSettled: (_answer, _error, { executionId }) => executionChanged(client, executionId),
  });
}

/** Make a link that shows an execution, or answers one of its requests, to whoever has it. */
export function useCreateLink(executionId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Body<"createLink">) =>
      call("createLink", { path: { execution_id: executionId }, body }),
    onSuccess: () => client.invalidateQueries({ queryKey: queryKeys.links(executionId) }),
  });
}

/** Take a link back: it opens nothing any more. */
export function useRevokeLink(executionId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (linkId: string) => call("revokeLink", { path: { link_id: linkId } }),
    onSettled: () => client.invalidateQueries({ queryKey: queryKeys.links(executionId) }),
  });
}

function useCommand<Given>(
  executionId: string,
  mutationFn: (given: Given) => Promise<Operations["startExecution"]["answer"]>,
) {
  const client = useQueryClient();
  return useMutation({ mutationFn, onSuccess: () => executionChanged(client, executionId) });
}

// -- flows ------------------------------------------------------------------------------------------

export function useCreateFlow() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Body<"createFlow">) => call("createFlow", { body, key: newKey() }),
    onSuccess: (flow) => flowChanged(client, flow.plan_id),
  });
}

/** Change the name or the purpose of a flow. */
export function useUpdateFlow(flowId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ force, body }: { force?: boolean; body: Body<"updateFlow"> }) =>
      call("updateFlow", { path: { plan_id: flowId }, query: { force }, body }),
    onSuccess: () => flowChanged(client, flowId),
  });
}

/** Save inputs of a flow under a name, or give those that are saved another name. */
export function useSaveInputSet(flowId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ name, body }: { name: string; body: Body<"saveInputSet"> }) =>
      call("saveInputSet", { path: { plan_id: flowId, name }, body }),
    onSuccess: () => client.invalidateQueries({ queryKey: queryKeys.inputSets(flowId) }),
  });
}

export function useDeleteInputSet(flowId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (name: string) => call("deleteInputSet", { path: { plan_id: flowId, name } }),
    onSuccess: () => client.invalidateQueries({ queryKey: queryKeys.inputSets(flowId) }),
  });
}

/** Convert a file of another program; with `save_as_flow` it becomes a flow. */
export function useImportFile() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Body<"importFile">) => call("importFile", { body }),
    onSuccess: ({ saved }) => (saved === null ? undefined : flowChanged(client, saved)),
  });
}

// -- triggers and notifications ---------------------------------------------------------------------

/** Listen for an entry node of a flow. */
export function useCreateTrigger() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Body<"createTrigger">) => call("createTrigger", { body, key: newKey() }),
    onSuccess: () => client.invalidateQueries({ queryKey: queryKeys.triggers }),
  });
}

/** Have a trigger start executions, or none. */
export function useSwitchTrigger() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ triggerId, enabled }: { triggerId: string; enabled: boolean }) =>
      call(enabled ? "enableTrigger" : "disableTrigger", { path: { trigger_id: triggerId } }),
    onSuccess: () => client.invalidateQueries({ queryKey: queryKeys.triggers }),
  });
}

/** Start an execution as if a trigger had received something. */
export function useFireTrigger() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ triggerId, body }: { triggerId: string; body: Body<"fireTrigger"> }) =>
      call("fireTrigger", { path: { trigger_id: triggerId }, body, key: newKey() }),
    onSuccess: async (execution) => {
      await client.invalidateQueries({ queryKey: queryKeys.triggers });
      await executionChanged(client, execution.execution_id);
    },
  });
}

/** Delete a trigger with its deliveries. */
export function useDeleteTrigger() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (triggerId: string) => call("deleteTrigger", { path: { trigger_id: triggerId } }),
    onSuccess: () => client.invalidateQueries({ queryKey: queryKeys.triggers }),
  });
}

/** Have a notification sent again that nobody accepted. */
export function useResendNotification() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (notificationId: string) =>
      call("resendNotification", { path: { notification_id: notificationId } }),
    onSuccess: () => client.invalidateQueries({ queryKey: queryKeys.notifications }),
  });
}

// -- sessions ---------------------------------------------------------------------------------------

/** Turn the token into a session cookie; everything is read again with it. */
export function useLogin() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (token: string) => call("openSession", { body: { token } }),
    onSuccess: () => client.invalidateQueries(),
  });
}

export function useLogout() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => call("closeSession", {}),
    onSuccess: () => client.clear(),
  });
}
