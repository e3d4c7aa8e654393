import { useParams } from "react-router";
import { useChat } from "@/api/chatQueries";
import { ErrorNote } from "@/screens/ErrorNote";
import { usePageTitle } from "@/ui/pageTitle";
import { Skeleton } from "@/ui/Skeleton";
import { ChatList } from "./ChatList";
import styles from "./ChatScreen.module.css";
import { Conversation } from "./Conversation";
import { chatTitle } from "./chatWords";
import { NewChat } from "./NewChat";
import { useChatChanges } from "./useChatChanges";

/** Conversations with models and flows: the list, the one that is open, and what stands behind it. */
export function ChatScreen() {
  const { chatId = null } = useParams();
  return (
    <div className={styles.screen} data-chosen={chatId !== null}>
      <ChatList chosen={chatId} />
      {chatId === null ? <NewChat /> : <OpenChat key={chatId} chatId={chatId} />}
    </div>
  );
}

function OpenChat({ chatId }: { chatId: string }) {
  const query = useChat(chatId);
  useChatChanges(query.data ? chatId : null);
  usePageTitle(query.data ? chatTitle(query.data) : "Chat");
  if (query.isPending) {
    return (
      <section className={styles.state}>
        <Skeleton label="Loading the chat" lines={4} />
      </section>
    );
  }
  if (query.data === undefined) {
    return (
      <section className={styles.state}>
        <ErrorNote error={query.error} />
      </section>
    );
  }
  return <Conversation chat={query.data} />;
}
