"""What the official Python client of 0.3 sees of the server, over every binding.

The capitals in the comments are the requirements that a test is about, as docs/interop.md names
them.
"""

import os
import uuid

import pytest

from a2a.client import A2ACardResolver, A2AClient
from a2a.types import (
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    GetTaskPushNotificationConfigParams,
    GetTaskRequest,
    Message,
    MessageSendParams,
    Part,
    PushNotificationConfig,
    Role,
    SendMessageRequest,
    SendStreamingMessageRequest,
    TaskPushNotificationConfig,
    TaskQueryParams,
)
from a2a.utils import get_data_parts, get_file_parts, get_text_parts

from agent import opening, request, rest, shown, words

NOBODY = str(uuid.uuid4())
BINDINGS = os.environ['A2AD_INTEROP_BINDINGS'].split(',')


# A call, or a stream, that fails so. A stream has to fail before its first frame.
async def refused(agent, kind, call):
    seen = []
    with pytest.raises(Exception) as caught:
        if hasattr(call, '__aiter__'):
            async for frame in call:
                seen.append(frame)
        else:
            await call
    assert seen == []
    assert agent.kind_of(caught.value) == kind, repr(caught.value)


# V03-21, V03-22, V03-23
async def test_the_card_lists_the_bindings_that_the_server_has(agent):
    card = agent.card
    assert card.protocol_version == '0.3.0'
    addresses = {(card.preferred_transport, card.url)}
    addresses |= {(other.transport, other.url) for other in card.additional_interfaces}
    assert sorted(transport for transport, _ in addresses) == sorted(BINDINGS)
    assert card.name == 'Interop'
    assert [skill.id for skill in card.skills] == ['interop']
    assert card.capabilities.streaming
    assert not card.capabilities.push_notifications
    assert not card.supports_authenticated_extended_card
    older = A2ACardResolver(agent.http, agent.url, '/.well-known/agent.json')
    assert await older.get_agent_card() == card


# SEND-01, SEND-02, SEND-05, CTX-01, CTX-07, V03-02 to V03-05, V03-14, V03-16
async def test_send_answers_with_the_finished_task(agent):
    message_id = str(uuid.uuid4())
    task = await agent.send('parts please', message_id=message_id)
    assert task.id and task.context_id
    assert task.status.state == 'completed'
    # Over the other bindings the client drops it.
    assert task.status.timestamp or agent.binding != 'JSONRPC'
    assert words(task.status.message) == f'That was {message_id}'
    assert task.status.message.role == Role.agent
    [artifact] = task.artifacts
    assert (artifact.artifact_id, artifact.name) == ('parts', 'all kinds')
    text, raw, url, data = artifact.parts
    assert get_text_parts([text]) == ['Grüße, parts please']
    assert get_file_parts([raw, url]) == [
        FileWithBytes(bytes='AAH+/w==', mime_type='application/octet-stream', name='bytes.bin'),
        FileWithUri(uri='https://example.com/a.png', mime_type='image/png'),
    ]
    assert get_data_parts([data]) == [
        {'pages': 3, 'price': 1.5, 'tags': ['a', 'b'], 'nested': {'none': None, 'yes': True}}
    ]
    assert task.history[0].message_id == message_id
    assert task.history[0].role == Role.user
    assert words(task.history[0]) == 'parts please'


# SEND-05, V03-05, V03-14, V03-16
async def test_parts_of_every_kind_arrive_as_they_were_sent(agent):
    file = {'bytes': 'AAH+/w==', 'mime_type': 'application/octet-stream', 'name': 'bytes.bin'}
    link = {'uri': 'https://example.com/a.png', 'mime_type': 'image/png', 'name': 'a.png'}
    data = {'pages': 3, 'price': 1.5, 'tags': ['a', 'b'], 'nested': {'none': None, 'yes': True}}
    sent = [
        FilePart(file=FileWithBytes(**file), metadata={'page': 1}),
        FilePart(file=FileWithUri(**link), metadata={'page': 2}),
        DataPart(data=data, metadata={'page': 3}),
    ]
    task = await agent.send('short', parts=[Part(root=part) for part in sent])
    assert task.status.state == 'completed'
    kept = await agent.get(task.id)
    for message in (task.history[0], kept.history[0]):
        assert get_text_parts(message.parts) == ['short']
        assert [part.root for part in message.parts[1:]] == sent


# SEND-16
@pytest.mark.parametrize('text, end, said', [
    ('fail', 'failed', 'It broke'),
    ('reject', 'rejected', 'Not for me'),
    ('something no rule fits', 'rejected', None),
])
async def test_a_failure_of_the_agent_is_a_task_and_no_error(agent, text, end, said):
    task = await agent.send(text)
    assert task.status.state == end
    if said:
        assert words(task.status.message) == said


# SEND-03, CANCEL-01, V03-09
async def test_send_can_answer_at_once(agent):
    message, _ = request('hold on')
    polling, _ = await agent.configured(polling=True)
    [(polled, _)] = [reply async for reply in polling.send_message(message)]
    for task in (await agent.send('hold on', blocking=False), polled):
        assert task.status.state in ('submitted', 'working')
        task = await agent.cancel(task.id)
        assert task.status.state == 'canceled'


# SEND-17
async def test_a_message_sent_again_makes_no_second_task(agent):
    message_id = str(uuid.uuid4())
    first = await agent.send('short', message_id=message_id)
    again = await agent.send('short', message_id=message_id)
    other = await agent.send('short')
    assert again.id == first.id
    assert other.id != first.id


# STREAM-01, STREAM-03, STREAM-04, STREAM-06, STREAM-07, ART-01, ART-02, ART-04, V03-03, V03-06
async def test_a_stream_opens_with_the_task_and_tells_everything_in_order(agent):
    frames = agent.stream('stream please')
    task = await opening(frames)
    assert task.status.state == 'submitted'
    assert words(task.history[0]) == 'stream please'
    assert await rest(frames, task) == [
        ('status', 'working', '', ''),
        ('status', 'working', 'Working on it', ''),
        ('artifact', 'numbers', 'one', 'new'),
        ('artifact', 'numbers', 'two', 'append'),
        ('artifact', 'numbers', 'three', 'append last'),
        ('status', 'completed', 'Counted', 'final'),
    ]
    kept = await agent.get(task.id)
    assert [get_text_parts(a.parts) for a in kept.artifacts] == [['one', 'two', 'three']]


# V03-03, V03-09: the class that programs of 0.3 began with, which says nothing of how to send.
@pytest.mark.parametrize('agent', ['JSONRPC'], indirect=True)
@pytest.mark.filterwarnings('ignore:A2AClient is deprecated')
async def test_the_older_client_class_works(agent):
    client = A2AClient(agent.http, agent.card)
    params = [MessageSendParams(message=request('stream please')[0]) for _ in range(2)]
    sent = await client.send_message(SendMessageRequest(id='1', params=params[0]))
    assert sent.root.result.status.state == 'completed'
    streaming = SendStreamingMessageRequest(id='2', params=params[1])
    frames = [frame.root.result async for frame in client.send_message_streaming(streaming)]
    updates = ['status-update'] * 2 + ['artifact-update'] * 3 + ['status-update']
    assert [frame.kind for frame in frames] == ['task', *updates]
    missing = await client.get_task(GetTaskRequest(id='3', params=TaskQueryParams(id=NOBODY)))
    assert missing.root.error.code == -32001


# SSE-01: silence is no reason for the SDK's own client to give up.
@pytest.mark.parametrize('agent', ['JSONRPC'], indirect=True)
async def test_a_stream_outlives_a_silence(agent):
    client = await agent.impatient()
    message, _ = request('quiet please')
    frames = [frame async for frame in client.send_message(message)]
    assert frames[-1][0].status.state == 'completed'


# GET-01, HIST-01, HIST-02, HIST-03, V03-10
async def test_get_returns_the_task_with_as_much_history_as_wanted(agent):
    sent = await agent.send('ask me')
    sent = await agent.send('blue', task_id=sent.id, context_id=sent.context_id)
    assert await agent.get(sent.id) == sent
    whole = [message.message_id for message in sent.history]
    assert len(whole) >= 2
    # Where the number has no presence, 0 says nothing.
    none = await agent.get(sent.id, history_length=0)
    seen = [message.message_id for message in none.history or []]
    assert seen == ([] if agent.binding == 'JSONRPC' else whole)
    assert none.artifacts == sent.artifacts
    one = await agent.get(sent.id, history_length=1)
    assert [message.message_id for message in one.history] == whole[-1:]


# CANCEL-01, CANCEL-02, CANCEL-04, STREAM-03, V03-06
async def test_cancel_ends_the_task_and_its_stream(agent):
    frames = agent.stream('hold on')
    task = await opening(frames)
    assert shown(await anext(frames), task) == ('status', 'working', '', '')
    assert shown(await anext(frames), task) == ('status', 'working', 'Holding', '')
    canceled = await agent.cancel(task.id)
    assert (canceled.id, canceled.status.state) == (task.id, 'canceled')
    [(what, state, _, flags)] = await rest(frames, task)
    assert (what, state, flags) == ('status', 'canceled', 'final')
    await refused(agent, 'TaskNotCancelableError', agent.cancel(task.id))


# SUB-01, SUB-04, STREAM-05, V03-20
async def test_a_subscriber_joins_a_running_task(agent):
    sender = agent.stream('hold on')
    task = await opening(sender)
    assert shown(await anext(sender), task) == ('status', 'working', '', '')
    assert shown(await anext(sender), task) == ('status', 'working', 'Holding', '')
    frames = agent.subscribe(task.id)
    assert shown(await anext(frames), task) == ('task', 'working')
    await agent.cancel(task.id)
    ends = [await rest(sender, task), await rest(frames, task)]
    assert ends[0] == ends[1]
    [(what, state, _, flags)] = ends[0]
    assert (what, state, flags) == ('status', 'canceled', 'final')


# SUB-01, SUB-03, SUB-04, STREAM-05, CTX-03, CTX-11, V03-06
async def test_two_subscribers_see_the_same_events(agent):
    task = await agent.send('ask me')
    assert task.status.state == 'input-required'
    first, second = agent.subscribe(task.id), agent.subscribe(task.id)
    assert shown(await anext(first), task) == ('task', 'input-required')
    assert shown(await anext(second), task) == ('task', 'input-required')
    # Without the context: the task has it.
    answered = await agent.send('blue', task_id=task.id)
    assert (answered.id, answered.context_id) == (task.id, task.context_id)
    seen = await rest(first, task)
    assert seen == await rest(second, task)
    assert seen == [
        ('status', 'working', '', ''),
        ('status', 'working', 'Mixing blue', ''),
        ('artifact', 'paint', 'A bucket of blue', 'new last'),
        ('status', 'completed', 'It is blue', 'final'),
    ]


# CTX-11, SEND-15, STREAM-02, STREAM-08, V03-06
async def test_a_task_asks_and_goes_on_with_the_answer(agent):
    task = await agent.send('ask me')
    assert task.status.state == 'input-required'
    assert words(task.status.message) == 'Which colour?'

    # The stream of a message ends when the agent asks again.
    frames = agent.stream('red', task_id=task.id, context_id=task.context_id)
    assert shown(await anext(frames), task)[0] == 'task'
    end = ('status', 'input-required', 'Which colour?', 'final')
    assert (await rest(frames, task))[-1] == end

    done = await agent.send('blue', task_id=task.id, context_id=task.context_id)
    assert (done.id, done.context_id) == (task.id, task.context_id)
    assert done.status.state == 'completed'
    assert words(done.status.message) == 'It is blue'
    said = [words(message) for message in done.history if message.role == Role.user]
    assert said == ['ask me', 'red', 'blue']


# SEND-14, STREAM-01
async def test_an_agent_can_answer_with_a_message(agent):
    for client in (agent.client, agent.streaming):
        message, _ = request('message me')
        [reply] = [reply async for reply in client.send_message(message)]
        assert isinstance(reply, Message)
        assert reply.role == Role.agent
        assert words(reply) == 'Just this: message me'
        assert reply.message_id and reply.context_id
        task = await agent.get(reply.task_id)
        assert task.context_id == reply.context_id
        assert task.status.state == 'completed'


# GET-02, CTX-02, SUB-02, V03-12, V03-25
async def test_a_task_that_is_not_there_is_not_found(agent):
    for call in (
        agent.get(NOBODY),
        agent.cancel(NOBODY),
        agent.send('short', task_id=NOBODY),
        agent.stream('short', task_id=NOBODY),
        agent.subscribe(NOBODY),
    ):
        await refused(agent, 'TaskNotFoundError', call)


# CTX-05, CANCEL-02, V03-13
async def test_a_task_that_has_ended_takes_nothing_more(agent):
    task = await agent.send('short')
    await refused(agent, 'InvalidParamsError', agent.send('short', task_id=task.id))
    await refused(agent, 'InvalidParamsError', agent.stream('short', task_id=task.id))
    await refused(agent, 'TaskNotCancelableError', agent.cancel(task.id))
    assert await agent.get(task.id) == task
    # It can still be subscribed to.
    assert await rest(agent.subscribe(task.id), task) == [
        ('task', 'completed'),
        ('status', 'completed', '', 'final'),
    ]


# SEND-06, CTX-04, ERR-03
async def test_wrong_parameters_are_refused(agent):
    await refused(agent, 'InvalidParamsError', agent.send(None))
    await refused(agent, 'InvalidParamsError', agent.stream(None))

    task = await agent.send('ask me')
    elsewhere = {'task_id': task.id, 'context_id': NOBODY}
    await refused(agent, 'InvalidParamsError', agent.send('blue', **elsewhere))
    await refused(agent, 'InvalidParamsError', agent.stream('blue', **elsewhere))
    await refused(agent, 'InvalidParamsError', agent.get(task.id, history_length=-1))


# OPS-02, SEND-10
async def test_push_notifications_are_refused(agent):
    task = await agent.send('short')
    hook = PushNotificationConfig(url='https://example.com/hook')
    for call in (
        agent.client.set_task_callback(
            TaskPushNotificationConfig(task_id=task.id, push_notification_config=hook)
        ),
        agent.client.get_task_callback(
            GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id='one')
        ),
    ):
        await refused(agent, 'PushNotificationNotSupportedError', call)
    for client in await agent.configured(push_notification_configs=[hook]):
        message, _ = request('short')
        await refused(agent, 'PushNotificationNotSupportedError', client.send_message(message))
