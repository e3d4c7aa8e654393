import type { MessageResponse } from "@/api/types";

/** A message as far as the tree of a chat needs it. */
export type TreeMessage = Readonly<Pick<MessageResponse, "message_id" | "parent_id" | "siblings">>;

/** Return the messages from the first one to the head, in that order. */
export function branchTo<Message extends TreeMessage>(
  messages: readonly Message[],
  head: string | null,
): Message[] {
  const byId = new Map(messages.map((message) => [message.message_id, message]));
  const branch: Message[] = [];
  let at = head === null ? undefined : byId.get(head);
  while (at !== undefined && branch.length < messages.length) {
    branch.push(at);
    at = at.parent_id === null ? undefined : byId.get(at.parent_id);
  }
  return branch.reverse();
}

/** Return the last message below one, along the newest answers. */
export function newestBelow(messages: readonly TreeMessage[], messageId: string): string {
  const lastChild = new Map<string, string>();
  for (const { message_id, parent_id } of messages) {
    if (parent_id !== null) lastChild.set(parent_id, message_id);
  }
  let at = messageId;
  for (let next = lastChild.get(at); next !== undefined; next = lastChild.get(at)) at = next;
  return at;
}

/** Return the neighbours of a message among its siblings, and its place among them from 1. */
export function placeAmongSiblings({ message_id, siblings }: TreeMessage) {
  const index = siblings.indexOf(message_id);
  return {
    place: index + 1,
    count: siblings.length,
    previous: siblings[index - 1] ?? null,
    next: siblings[index + 1] ?? null,
  };
}

/** Return how many branches a chat has: messages that nothing follows. */
export function countBranches(messages: readonly TreeMessage[]): number {
  const parents = new Set(messages.map(({ parent_id }) => parent_id));
  return messages.filter(({ message_id }) => !parents.has(message_id)).length;
}
