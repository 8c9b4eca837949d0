"""What the official Python client sees of the server, over every binding.

The capitals in the comments are the requirements of A2A 1.0 that a test is about, as
docs/interop.md names them.
"""

import os
import uuid

import pytest

from a2a.helpers import (
    get_artifact_text,
    get_data_parts,
    get_message_text,
    get_raw_parts,
    get_text_parts,
    get_url_parts,
)
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Role,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from agent import request, rest, shown, state

NOBODY = str(uuid.uuid4())


# Gives the frames that came before the error; there must not be any.
async def refused(error, frames):
    seen = []
    with pytest.raises(error) as caught:
        async for frame in frames:
            seen.append(frame)
    assert seen == []
    return caught.value


# CARD-01, CARD-02
async def test_the_card_lists_the_bindings_that_the_server_has(agent):
    bindings = os.environ['A2AD_INTEROP_BINDINGS'].split(',')
    versions = os.environ['A2AD_INTEROP_VERSIONS'].split(',')
    listed = agent.card.supported_interfaces
    assert [i.protocol_version for i in listed] == [v for v in versions for _ in bindings]
    assert sorted((i.protocol_binding, i.protocol_version) for i in listed) == sorted(
        (binding, version) for binding in bindings for version in versions
    )
    assert agent.card.name == 'Interop'
    assert [skill.id for skill in agent.card.skills] == ['interop']
    assert agent.card.capabilities.streaming
    assert not agent.card.capabilities.push_notifications


# SEND-01, SEND-02, SEND-05, CTX-01, CTX-07
async def test_send_answers_with_the_finished_task(agent):
    message_id = str(uuid.uuid4())
    task = await agent.send('parts please', message_id=message_id)
    assert task.id and task.context_id
    assert state(task.status) == 'COMPLETED'
    assert task.status.HasField('timestamp')
    assert get_message_text(task.status.message) == f'That was {message_id}'
    assert task.status.message.role == Role.ROLE_AGENT
    [artifact] = task.artifacts
    assert (artifact.artifact_id, artifact.name) == ('parts', 'all kinds')
    text, raw, url, data = artifact.parts
    assert get_text_parts([text]) == ['Grüße, parts please']
    assert get_raw_parts([raw]) == [b'\x00\x01\xfe\xff']
    assert (raw.media_type, raw.filename) == ('application/octet-stream', 'bytes.bin')
    assert get_url_parts([url]) == ['https://example.com/a.png']
    assert url.media_type == 'image/png'
    assert get_data_parts([data]) == [
        {'pages': 3, 'price': 1.5, 'tags': ['a', 'b'], 'nested': {'none': None, 'yes': True}}
    ]
    assert task.history[0].message_id == message_id
    assert task.history[0].role == Role.ROLE_USER
    assert get_message_text(task.history[0]) == 'parts please'


# SEND-16
@pytest.mark.parametrize('text, end, words', [
    ('fail', 'FAILED', 'It broke'),
    ('reject', 'REJECTED', 'Not for me'),
    ('something no rule fits', 'REJECTED', None),
])
async def test_a_failure_of_the_agent_is_a_task_and_no_error(agent, text, end, words):
    task = await agent.send(text)
    assert state(task.status) == end
    if words:
        assert get_message_text(task.status.message) == words


# SEND-03, CANCEL-01
async def test_send_can_answer_at_once(agent):
    task = await agent.send('hold on', return_immediately=True)
    assert state(task.status) in ('SUBMITTED', 'WORKING')
    task = await agent.client.cancel_task(CancelTaskRequest(id=task.id))
    assert state(task.status) == 'CANCELED'


# SEND-17
async def test_a_message_sent_again_makes_no_second_task(agent):
    message_id = str(uuid.uuid4())
    first = await agent.send('short', message_id=message_id)
    again = await agent.send('short', message_id=message_id)
    other = await agent.send('short')
    assert again.id == first.id
    assert other.id != first.id


# STREAM-01, STREAM-03, STREAM-04, STREAM-06, STREAM-07, ART-01, ART-02, ART-04
async def test_a_stream_opens_with_the_task_and_tells_everything_in_order(agent):
    frames = agent.stream('stream please')
    first = await anext(frames)
    assert first.HasField('task')
    task = first.task
    assert state(task.status) == 'SUBMITTED'
    assert get_message_text(task.history[0]) == 'stream please'
    assert await rest(frames, task) == [
        ('status', 'WORKING', ''),
        ('status', 'WORKING', 'Working on it'),
        ('artifact', 'numbers', 'one', 'new'),
        ('artifact', 'numbers', 'two', 'append'),
        ('artifact', 'numbers', 'three', 'append last'),
        ('status', 'COMPLETED', 'Counted'),
    ]
    kept = await agent.client.get_task(GetTaskRequest(id=task.id))
    assert [get_text_parts(a.parts) for a in kept.artifacts] == [['one', 'two', 'three']]


# SSE-01: silence is no reason for the SDK's own client to give up.
@pytest.mark.parametrize('agent', ['JSONRPC'], indirect=True)
async def test_a_stream_outlives_a_silence(agent):
    client = await agent.impatient()
    frames = [frame async for frame in client.send_message(request('quiet please'))]
    assert state(frames[-1].status_update.status) == 'COMPLETED'


# GET-01, HIST-01, HIST-02, HIST-03
async def test_get_returns_the_task_with_as_much_history_as_wanted(agent):
    sent = await agent.send('ask me')
    sent = await agent.send('blue', task_id=sent.id, context_id=sent.context_id)
    assert await agent.client.get_task(GetTaskRequest(id=sent.id)) == sent
    whole = [message.message_id for message in sent.history]
    assert len(whole) >= 2
    none = await agent.client.get_task(GetTaskRequest(id=sent.id, history_length=0))
    assert not none.history
    assert none.artifacts == sent.artifacts
    one = await agent.client.get_task(GetTaskRequest(id=sent.id, history_length=1))
    assert [message.message_id for message in one.history] == whole[-1:]


# LIST-02, LIST-03, LIST-04, LIST-05, LIST-06, CTX-06, CTX-08
async def test_list_pages_through_a_context_newest_first(agent):
    made = [await agent.send('short 0')]
    context = made[0].context_id
    for number in range(1, 5):
        made.append(await agent.send(f'short {number}', context_id=context))
    assert {task.context_id for task in made} == {context}
    newest_first = [task.id for task in reversed(made)]

    seen, sizes, token = [], [], ''
    for _ in range(len(made) + 1):
        page = await agent.client.list_tasks(
            ListTasksRequest(context_id=context, page_size=2, page_token=token)
        )
        assert (page.page_size, page.total_size) == (2, 5)
        assert not any(task.artifacts for task in page.tasks)
        seen += [task.id for task in page.tasks]
        sizes.append(len(page.tasks))
        token = page.next_page_token
        if not token:
            break
    assert seen == newest_first
    assert sizes == [2, 2, 1]

    page = await agent.client.list_tasks(
        ListTasksRequest(context_id=context, include_artifacts=True, history_length=0)
    )
    assert (page.page_size, page.total_size, page.next_page_token) == (50, 5, '')
    texts = [get_artifact_text(task.artifacts[0]) for task in page.tasks]
    assert texts == [f'short {number}' for number in (4, 3, 2, 1, 0)]
    assert not any(task.history for task in page.tasks)


# LIST-01, LIST-06
async def test_list_filters_by_state(agent):
    done = await agent.send('short')
    waits = await agent.send('ask me', context_id=done.context_id)
    for wanted, expected in [
        (TaskState.TASK_STATE_COMPLETED, [done.id]),
        (TaskState.TASK_STATE_INPUT_REQUIRED, [waits.id]),
        (TaskState.TASK_STATE_FAILED, []),
    ]:
        page = await agent.client.list_tasks(
            ListTasksRequest(context_id=done.context_id, status=wanted)
        )
        assert [task.id for task in page.tasks] == expected
        assert page.total_size == len(expected)


# CANCEL-01, CANCEL-02, CANCEL-04, STREAM-03
async def test_cancel_ends_the_task_and_its_stream(agent):
    frames = agent.stream('hold on')
    task = (await anext(frames)).task
    assert shown(await anext(frames), task) == ('status', 'WORKING', '')
    assert shown(await anext(frames), task) == ('status', 'WORKING', 'Holding')
    canceled = await agent.client.cancel_task(CancelTaskRequest(id=task.id))
    assert (canceled.id, state(canceled.status)) == (task.id, 'CANCELED')
    assert [frame[:2] for frame in await rest(frames, task)] == [('status', 'CANCELED')]
    with pytest.raises(TaskNotCancelableError):
        await agent.client.cancel_task(CancelTaskRequest(id=task.id))


# SUB-01, SUB-04, STREAM-05
async def test_a_subscriber_joins_a_running_task(agent):
    sender = agent.stream('hold on')
    task = (await anext(sender)).task
    assert shown(await anext(sender), task) == ('status', 'WORKING', '')
    assert shown(await anext(sender), task) == ('status', 'WORKING', 'Holding')
    frames = agent.subscribe(task.id)
    assert shown(await anext(frames), task) == ('task', 'WORKING')
    await agent.client.cancel_task(CancelTaskRequest(id=task.id))
    ends = [await rest(sender, task), await rest(frames, task)]
    assert ends[0] == ends[1]
    assert [frame[:2] for frame in ends[0]] == [('status', 'CANCELED')]


# SUB-01, SUB-03, SUB-04, STREAM-05, CTX-03, CTX-11
async def test_two_subscribers_see_the_same_events(agent):
    task = await agent.send('ask me')
    assert state(task.status) == 'INPUT_REQUIRED'
    first, second = agent.subscribe(task.id), agent.subscribe(task.id)
    assert shown(await anext(first), task) == ('task', 'INPUT_REQUIRED')
    assert shown(await anext(second), task) == ('task', 'INPUT_REQUIRED')
    # Without the context: the task has it.
    answered = await agent.send('blue', task_id=task.id)
    assert (answered.id, answered.context_id) == (task.id, task.context_id)
    seen = await rest(first, task)
    assert seen == await rest(second, task)
    assert seen == [
        ('status', 'WORKING', ''),
        ('status', 'WORKING', 'Mixing blue'),
        ('artifact', 'paint', 'A bucket of blue', 'new last'),
        ('status', 'COMPLETED', 'It is blue'),
    ]


# CTX-11, SEND-15, STREAM-02, STREAM-08
async def test_a_task_asks_and_goes_on_with_the_answer(agent):
    task = await agent.send('ask me')
    assert state(task.status) == 'INPUT_REQUIRED'
    assert get_message_text(task.status.message) == 'Which colour?'

    # The stream of a message ends when the agent asks again.
    frames = agent.stream('red', task_id=task.id, context_id=task.context_id)
    assert shown(await anext(frames), task)[0] == 'task'
    assert (await rest(frames, task))[-1] == ('status', 'INPUT_REQUIRED', 'Which colour?')

    done = await agent.send('blue', task_id=task.id, context_id=task.context_id)
    assert (done.id, done.context_id) == (task.id, task.context_id)
    assert state(done.status) == 'COMPLETED'
    assert get_message_text(done.status.message) == 'It is blue'
    said = [get_message_text(m) for m in done.history if m.role == Role.ROLE_USER]
    assert said == ['ask me', 'red', 'blue']


# SEND-14, STREAM-01
async def test_an_agent_can_answer_with_a_message(agent):
    for client in (agent.client, agent.streaming):
        [reply] = [reply async for reply in client.send_message(request('message me'))]
        assert reply.HasField('message')
        assert reply.message.role == Role.ROLE_AGENT
        assert get_message_text(reply.message) == 'Just this: message me'
        assert reply.message.message_id and reply.message.context_id
        task = await agent.client.get_task(GetTaskRequest(id=reply.message.task_id))
        assert task.context_id == reply.message.context_id
        assert state(task.status) == 'COMPLETED'


# GET-02, CTX-02, SUB-02
async def test_a_task_that_is_not_there_is_not_found(agent):
    with pytest.raises(TaskNotFoundError):
        await agent.client.get_task(GetTaskRequest(id=NOBODY))
    with pytest.raises(TaskNotFoundError):
        await agent.client.cancel_task(CancelTaskRequest(id=NOBODY))
    with pytest.raises(TaskNotFoundError):
        await agent.send('short', task_id=NOBODY)
    await refused(TaskNotFoundError, agent.stream('short', task_id=NOBODY))
    await refused(TaskNotFoundError, agent.subscribe(NOBODY))


# CTX-05, CANCEL-02, SUB-02
async def test_a_task_that_has_ended_takes_nothing_more(agent):
    task = await agent.send('short')
    with pytest.raises(UnsupportedOperationError):
        await agent.send('short', task_id=task.id)
    await refused(UnsupportedOperationError, agent.stream('short', task_id=task.id))
    await refused(UnsupportedOperationError, agent.subscribe(task.id))
    with pytest.raises(TaskNotCancelableError):
        await agent.client.cancel_task(CancelTaskRequest(id=task.id))
    assert await agent.client.get_task(GetTaskRequest(id=task.id)) == task


# SEND-06, CTX-04, LIST (pageSize, pageToken), ERR-03
async def test_wrong_parameters_are_refused(agent):
    empty = request('')
    del empty.message.parts[:]
    with pytest.raises(InvalidParamsError):
        [reply async for reply in agent.client.send_message(empty)]
    await refused(InvalidParamsError, agent.streaming.send_message(empty))

    task = await agent.send('ask me')
    elsewhere = {'task_id': task.id, 'context_id': NOBODY}
    with pytest.raises(InvalidParamsError):
        await agent.send('blue', **elsewhere)
    await refused(InvalidParamsError, agent.stream('blue', **elsewhere))

    for wrong in ({'page_size': 0}, {'page_size': 101}, {'page_token': 'nonsense'}):
        with pytest.raises(InvalidParamsError):
            await agent.client.list_tasks(ListTasksRequest(**wrong))
    with pytest.raises(InvalidParamsError):
        await agent.client.get_task(GetTaskRequest(id=task.id, history_length=-1))


# OPS-02, SEND-10
async def test_push_notifications_are_refused(agent):
    task = await agent.send('short')
    config = TaskPushNotificationConfig(task_id=task.id, url='https://example.com/hook')
    client = agent.client
    named = {'task_id': task.id, 'id': 'one'}
    for call, argument in [
        (client.create_task_push_notification_config, config),
        (
            client.get_task_push_notification_config,
            GetTaskPushNotificationConfigRequest(**named),
        ),
        (
            client.list_task_push_notification_configs,
            ListTaskPushNotificationConfigsRequest(task_id=task.id),
        ),
        (
            client.delete_task_push_notification_config,
            DeleteTaskPushNotificationConfigRequest(**named),
        ),
    ]:
        with pytest.raises(PushNotificationNotSupportedError):
            await call(argument)
    inline = {'task_push_notification_config': TaskPushNotificationConfig(url=config.url)}
    with pytest.raises(PushNotificationNotSupportedError):
        await agent.send('short', **inline)
    await refused(PushNotificationNotSupportedError, agent.stream('short', **inline))
